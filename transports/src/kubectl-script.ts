// The bash texts that run inside the pod. Only bash itself, /proc, `sleep` and, where there is one, `setsid` are used: what Alpine's
// busybox and Debian's coreutils have in common.

export const MARK_VARIABLE = "DIALOUT_EXEC_MARK";

/** Single-quotes a text for a POSIX shell. */
export const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Tags on the wrapper's streams; `nonce` keeps a command from ending its own output by accident. */
export const frames = (nonce: string) => ({ start: `\x01S${nonce}\n`, stdoutEnd: `\x01O${nonce}`, status: `\x01E${nonce} ` });

/** The same tag as a printf format: bash keeps raw \x01 bytes in its sources for itself. */
const format = (frame: string): string => quote(frame.replaceAll("\x01", "\\001").replaceAll("\n", "\\n"));

/**
 * Defines `kill_marked SECONDS AGE`: kills every process of the exec, and looks again until nothing is left or SECONDS are over. Prints
 * `found killed remaining opaque`. A process belongs to the exec when its environment has the mark, when its session was made
 * by such a process, or when its parent belongs to it. Processes are stopped first, so that none forks while we look.
 * `opaque` counts orphans younger than AGE seconds whose environment we may not read: one of them might be ours under another user.
 */
const killMarked = (mark: string): string => `
scan_marked() {
  local p pid v s more since
  local -A parent=() sid_of=() ours=()
  hit=(); opaque=0
  read -r since _ < /proc/uptime; since=$(( (\${since%.*} - $1 - 2) * 100 ))
  for p in /proc/[0-9]*; do
    pid=\${p#/proc/}; s=
    IFS= read -r -d '' s 2>/dev/null < $p/stat
    [[ $s ]] || continue
    set -- "$1" \${s##*) }
    [[ $2 == [ZX] ]] && continue
    parent[$pid]=$3 sid_of[$pid]=$5
    [[ \${seen[$pid]} ]] && { ours[$pid]=1; continue; }
    if { : < $p/environ; } 2>/dev/null; then
      while IFS= read -r -d '' v; do
        [[ $v == ${quote(`${MARK_VARIABLE}=${mark}`)} ]] && { ours[$pid]=1; break; }
      done 2>/dev/null < $p/environ
    elif [[ -d $p && ! -O $p ]] && (( $3 <= 1 && \${21} > since )); then opaque=$((opaque + 1)); fi
  done
  for pid in "\${!ours[@]}"; do
    s=\${sid_of[$pid]}
    (( s > 0 )) && [[ \${ours[$s]} || ! \${parent[$s]} ]] && sessions[$s]=1
  done
  more=1
  while [[ $more ]]; do
    more=
    for pid in "\${!parent[@]}"; do
      [[ \${ours[$pid]} || $pid == 1 || $pid == $$ || $pid == $BASHPID ]] && continue
      [[ \${ours[\${parent[$pid]}]} || \${sessions[\${sid_of[$pid]}]} ]] && { ours[$pid]=1; more=1; }
    done
  done
  hit=("\${!ours[@]}")
}
kill_marked() {
  local -A seen=() sessions=()
  local pid found=0 round=0 end=$((SECONDS + $1))
  while scan_marked "$2"; (( \${#hit[@]} && SECONDS < end )); do
    for pid in "\${hit[@]}"; do
      if [[ \${seen[$pid]} ]]; then kill -KILL $pid
      else seen[$pid]=1 found=$((found + 1)); kill -STOP $pid; fi
    done 2>/dev/null
    (( ++round > 10 )) && sleep 1
  done
  echo "$found $((found - \${#hit[@]})) \${#hit[@]} $opaque"
}
`;

export interface WrapperOptions {
  command: string;
  mark: string;
  nonce: string;
  /** Whole seconds; 0 = no limit. */
  timeoutS: number;
}

const KILL_SECONDS = 5;

/**
 * Runs the command with its mark, in a session of its own, and reports its status in a frame. The time limit lives here too, so that it
 * holds when the caller is dead. Frames go to the streams that the command wrote to, after everything that it wrote.
 */
export function wrapperScript({ command, mark, nonce, timeoutS }: WrapperOptions): string {
  const f = frames(nonce);
  // The watchdog answers on descriptor 9 and holds none of the command's streams, so it never keeps a finished exec open.
  const watchdog = `
exec 9< <(
  exec 8>&- </dev/null
  trap 'kill $!; exit' TERM
  sleep ${timeoutS} >/dev/null & wait $! || exit
  trap '' TERM
  kill_marked ${KILL_SECONDS} ${timeoutS}
)
watchdog=$!`;
  const report = `kill $watchdog; IFS= read -r late <&9`;
  return `${timeoutS ? killMarked(mark) : ""}
exec 8>&2 2>/dev/null
printf ${format(f.start)} >&8
command=${quote(command)}
session=; type -P setsid >/dev/null && session=setsid
${timeoutS ? watchdog : ""}
${MARK_VARIABLE}=${mark} $session bash -c "$command" 2>&8 8>&- 9<&-
status=$?
late=
${timeoutS ? report : ""}
printf ${format(f.stdoutEnd)}
printf ${format(`${f.status}%s %s\n`)} $status "$late" >&8
exit $status`;
}

/** Kills what the mark names. Prints one status frame on stdout: `found killed remaining opaque`. */
export function killerScript(mark: string, nonce: string, ageS: number): string {
  return `${killMarked(mark)}
printf ${format(`${frames(nonce).status}%s\n`)} "$(kill_marked ${KILL_SECONDS} ${Math.ceil(ageS)})"`;
}
