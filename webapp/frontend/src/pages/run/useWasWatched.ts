import { useEffect, useState } from 'react';
import { isOver, type RunState } from '@/api/types';

/** Whether this page has seen the run going on: then its end must not replace the page under the reader's eyes. */
export function useWasWatched(id: number, status: RunState | undefined): boolean {
  const [watched, setWatched] = useState<number | null>(null);
  const goesOn = status !== undefined && !isOver(status);
  useEffect(() => {
    if (goesOn) setWatched(id);
  }, [id, goesOn]);
  return watched === id || goesOn;
}
