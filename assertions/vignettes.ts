import { Ledger, type Outcome } from "./evidence";
import type { ProofInput } from "./input";
import type { World } from "./ports";

export async function vignettes(_input: ProofInput, _world: World, _progress?: (check: string) => void): Promise<Outcome> {
  return new Ledger([]).close([]);
}
