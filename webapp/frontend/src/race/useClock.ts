import { useEffect, useState } from 'react';

const TICK_MS = 100;

/** Time since the start, which passes `speed` times as fast as on the wall, up to `end_s`; it is at the end at once for
 * who wants no motion.
 */
export function useClock(end_s: number, speed: number, ready: boolean) {
  const [time_s, setTime] = useState(() =>
    matchMedia('(prefers-reduced-motion: reduce)').matches ? Infinity : 0,
  );
  const [runs, setRuns] = useState(true);
  const over = time_s >= end_s;
  const ticks = runs && ready && !over;
  useEffect(() => {
    if (!ticks) return undefined;
    let last_ms = performance.now();
    const timer = setInterval(() => {
      const now_ms = performance.now();
      const passed_s = (speed * (now_ms - last_ms)) / 1000; // not at the tick: it would begin from another `last_ms`
      last_ms = now_ms;
      setTime((before_s) => before_s + passed_s);
    }, TICK_MS);
    return () => clearInterval(timer);
  }, [ticks, speed]);
  return {
    time_s: Math.min(time_s, end_s),
    plays: ticks,
    toggle: () => {
      if (over) setTime(0);
      setRuns(over || !runs);
    },
  };
}
