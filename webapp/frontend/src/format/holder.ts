/** Another program that emulates on a worker's machine: whose process, for what, since when (1970). */
interface Holder {
  purpose: string;
  user: string;
  pid: number;
  since: number;
}

/** "a run of root (process 4711), since 10:32". */
export function holderText({ purpose, user, pid, since }: Holder): string {
  const time = new Date(since * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  return `a ${purpose} of ${user} (process ${pid}), since ${time}`;
}
