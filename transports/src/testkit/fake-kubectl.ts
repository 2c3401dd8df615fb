// For tests only: a kubectl whose pods are this machine. As with the real one, what it started goes on when kubectl itself dies.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const SCRIPT = `#!/bin/bash
# Takes exactly: exec -i -n NS [--kubeconfig F] [--context C] [-c CONTAINER] POD -- COMMAND...
here=$(dirname "$0")
for a; do printf '%s\\0' "$a"; done >> "$here/argv"; printf '\\036' >> "$here/argv"
die() { echo "$1" >&2; exit 1; }
[ "$1 $2 $3" = "exec -i -n" ] || die "error: unknown command $*"
ns=$4; shift 4
while :; do case $1 in --kubeconfig|--context|-c) shift 2;; *) break;; esac; done
pod=$1; [ "$2" = -- ] || die "error: unexpected $2"; shift 2
case $pod in
  pod-a) ;;
  pod-forbidden) die 'Error from server (Forbidden): pods "pod-forbidden" is forbidden: User "u" cannot create resource "pods/exec"';;
  pod-nobash) echo 'OCI runtime exec failed: exec: "bash": executable file not found in $PATH' >&2; exit 127;;
  pod-nocluster) die 'Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout';;
  *) die "Error from server (NotFound): pods \\"$pod\\" not found";;
esac
[ -e "$here/slow" ] && sleep "$(cat "$here/slow")"
echo $$ >> "$here/pids"
echo 'Defaulted container "main" out of: main, other' >&2
# The pod's streams end here, as they do with the real one: its process outlives us without holding ours.
exec 3>&1 4>&2
cat 3>&- 4>&- | { setsid -w "$@" 2>&1 >&5 3>&- 4>&- 5>&- | cat >&4; exit \${PIPESTATUS[0]}; } 5>&1 | cat >&3
code=\${PIPESTATUS[1]}
[ $code = 0 ] || echo "command terminated with exit code $code" >&2
exit $code
`;

export class FakeKubectl {
  private readonly dir = mkdtempSync(path.join(tmpdir(), "fake-kubectl-"));
  readonly path = path.join(this.dir, "kubectl");

  constructor() {
    writeFileSync(this.path, SCRIPT);
    chmodSync(this.path, 0o755);
  }

  /** The arguments of every call so far. */
  calls(): string[][] {
    return readFileSync(path.join(this.dir, "argv"), "utf8").split("\0\x1e").filter(Boolean).map((line) => line.split("\0"));
  }

  /** Process ids of the calls that reached the pod. */
  pids(): number[] {
    try {
      return readFileSync(path.join(this.dir, "pids"), "utf8").trim().split("\n").map(Number);
    } catch {
      return [];
    }
  }

  /** Lets the API server take its time. */
  slow(seconds: number): void {
    writeFileSync(path.join(this.dir, "slow"), String(seconds));
  }

  remove(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}
