import { useEffect, useRef, useState } from 'react';

/** How many answers there are when a change that is sent now, after `answers` of them, has its own. */
export function awaitedAfter(awaited: number, answers: number): number {
  return Math.max(awaited, answers) + 1;
}

/**
 * A change is pending from the click until an event says that it was applied or refused. Of several changes
 * the last one counts: the answer to an earlier one does not end the wait.
 */
export function usePending(
  changes: number,
  refusals: number,
): [boolean, (send: () => Promise<boolean>) => Promise<void>] {
  const answers = changes + refusals;
  const latest = useRef(answers);
  useEffect(() => {
    latest.current = answers;
  }, [answers]);
  const [awaited, setAwaited] = useState(answers);
  const submit = async (send: () => Promise<boolean>) => {
    setAwaited((before) => awaitedAfter(before, latest.current));
    if (!(await send())) setAwaited((before) => before - 1);
  };
  return [awaited > answers, submit];
}
