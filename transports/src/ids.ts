import { randomInt } from "node:crypto";

const COUNTER_SPAN = 2 ** 32;

/**
 * req_id source: a random 21-bit salt per process above a 32-bit counter. The largest value is 2^53-1, which peers that decode
 * uint64 into a double still read exactly. A used-up counter takes a new salt instead of repeating itself.
 */
export class RequestIds {
  private salt: number;
  private counter: number;

  constructor(private readonly random: (max: number) => number = randomInt, start = 1) {
    this.salt = this.newSalt();
    this.counter = start;
  }

  next(): bigint {
    if (this.counter >= COUNTER_SPAN) {
      this.salt = this.newSalt();
      this.counter = 0;
    }
    return (BigInt(this.salt) << 32n) | BigInt(this.counter++);
  }

  private newSalt(): number {
    return this.random(2 ** 21);
  }
}

/** One per process: transports of one harness never share an id. */
export const requestIds = new RequestIds();
