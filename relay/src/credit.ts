/**
 * Flow control towards a worker that understands it. The worker may send `window` chunk bytes per delivery, then as many as
 * it is granted. Bytes are granted back only after the caller's stream took them.
 */
export class CreditLedger {
  private owed = 0;
  private readonly step: number;

  constructor(readonly window: number) {
    // Small grants cost a frame each; a whole window would stall the worker between grants.
    this.step = Math.floor(window / 4);
  }

  /** The caller took `bytes`. Returns what to grant now; 0 = nothing yet. */
  taken(bytes: number): number {
    this.owed += bytes;
    if (this.owed < this.step) return 0;
    const grant = this.owed;
    this.owed = 0;
    return grant;
  }
}
