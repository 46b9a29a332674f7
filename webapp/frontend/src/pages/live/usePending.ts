import { useEffect, useState } from 'react';

interface Waiting {
  changes: number;
  refusals: number;
}

/** A change is pending from the click until an event says that it was applied or refused. */
export function usePending(
  changes: number,
  refusals: number,
): [boolean, (send: () => Promise<boolean>) => Promise<void>] {
  const [waiting, setWaiting] = useState<Waiting | null>(null);
  const answered = waiting !== null && (changes > waiting.changes || refusals > waiting.refusals);
  useEffect(() => {
    if (answered) setWaiting(null);
  }, [answered]);
  const submit = async (send: () => Promise<boolean>) => {
    setWaiting({ changes, refusals });
    if (!(await send())) setWaiting(null);
  };
  return [waiting !== null && !answered, submit];
}
