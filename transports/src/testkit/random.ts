/** A random source that repeats for the same seed (mulberry32). For tests only. */
export class Random {
  private state: number;

  constructor(readonly seed: number) {
    this.state = seed >>> 0;
  }

  /** 0 <= x < 1 */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  pick<T>(from: readonly T[]): T {
    return from[this.int(0, from.length - 1)] as T;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }
}

/** The seed of a run: `variable` of the environment, or a new one. */
export function seedFrom(variable: string): number {
  const given = process.env[variable];
  if (given === undefined || given === "") return Math.floor(Math.random() * 2 ** 31);
  if (!/^\d{1,10}$/.test(given)) throw new Error(`${variable}=${JSON.stringify(given)} must be a whole number. For example: ${variable}=42`);
  return Number(given);
}

/** A count from the environment. */
export function countFrom(variable: string, fallback: number): number {
  const given = process.env[variable];
  if (given === undefined || given === "") return fallback;
  if (!/^[1-9]\d{0,6}$/.test(given)) throw new Error(`${variable}=${JSON.stringify(given)} must be a whole number from 1. For example: ${variable}=${fallback}`);
  return Number(given);
}
