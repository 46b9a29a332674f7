import { useEffect, useState } from 'react';
import { isOver, type RunState } from '@/api/types';

/** Whether this page was open before the run was over: then it stays on the live page. */
export function useWasWatched(id: number, status: RunState | undefined): boolean {
  const [watched, setWatched] = useState<number | null>(null);
  const goesOn = status !== undefined && !isOver(status);
  useEffect(() => {
    if (goesOn) setWatched(id);
  }, [id, goesOn]);
  return watched === id || goesOn;
}
