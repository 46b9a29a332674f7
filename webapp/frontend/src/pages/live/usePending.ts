import { useCallback, useEffect, useRef, useState } from 'react';
import type { LiveCommand } from '@/api/types';
import { sendChange } from '@/run/feed/commands';

/** How many answers there are when a change that is sent now, after `answers` of them, has its own. */
export function awaitedAfter(awaited: number, answers: number): number {
  return Math.max(awaited, answers) + 1;
}

/**
 * Whether a change is pending, and a function that sends one to run `id`; it stays the same. A change is pending
 * from the click until an event says that it was applied or refused. Of several changes the last one counts: the
 * answer to an earlier one does not end the wait.
 */
export function usePending(
  id: number,
  changes: number,
  refusals: number,
): [boolean, (command: LiveCommand) => void] {
  const answers = changes + refusals;
  const latest = useRef(answers);
  useEffect(() => {
    latest.current = answers;
  }, [answers]);
  const [awaited, setAwaited] = useState(answers);
  const send = useCallback(
    async (command: LiveCommand) => {
      setAwaited((before) => awaitedAfter(before, latest.current));
      if (!(await sendChange(id, command))) setAwaited((before) => before - 1);
    },
    [id],
  );
  return [awaited > answers, send];
}
