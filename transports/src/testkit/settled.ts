/** Resolves when `value` has not changed for `ms`. For tests only. */
export async function settled(value: () => number, ms = 500): Promise<void> {
  let last = value();
  for (let since = Date.now(); Date.now() - since < ms; ) {
    await new Promise((r) => setTimeout(r, 20));
    if (value() === last) continue;
    last = value();
    since = Date.now();
  }
}
