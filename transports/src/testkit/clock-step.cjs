// For tests only, loaded by node --require: SIGUSR2 puts this process's wall clock forward or back by an hour, in turns. The monotonic clock goes on,
// as it does when an operator or NTP steps the clock of a machine.
const real = Date.now.bind(Date);
const RealDate = Date;
let step = 0, next = 3_600_000;
globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length ? args : [real() + step]));
  }
  static now() {
    return real() + step;
  }
};
process.on("SIGUSR2", () => {
  step += next;
  next = -2 * next;
  process.stderr.write(`clock stepped, now ${step} ms off\n`);
});
