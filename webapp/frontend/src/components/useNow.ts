import { useEffect, useState } from 'react';

/** The wall-clock time in milliseconds, updated every `everyMs`; for texts such as "3 minutes ago". */
export function useNow(everyMs = 30_000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), everyMs);
    return () => window.clearInterval(timer);
  }, [everyMs]);
  return now;
}
