import { Skeleton } from '@mantine/core';
import { useInViewport } from '@mantine/hooks';
import { Suspense, useEffect, useState } from 'react';
import { useMayWrite, useShowcases } from '@/api/queries';
import { later } from '@/components/later';
import { demoOf } from './demo';

const Race = later(async () => (await import('@/race/Race')).Race);

/** Two methods race with the demo's question, for who may ask for predictions: loaded when it comes into view. */
export function DemoRace() {
  const demo = demoOf(useShowcases().data);
  const mayWrite = useMayWrite();
  const { ref, inViewport } = useInViewport();
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (inViewport) setSeen(true);
  }, [inViewport]);
  if (!demo || !mayWrite) return null;
  const place = <Skeleton height={420} radius="md" animate={seen} />;
  return (
    <div ref={ref} data-testid="race-place">
      {seen ? (
        <Suspense fallback={place}>
          <Race key={demo.name} showcase={demo} />
        </Suspense>
      ) : (
        place
      )}
    </div>
  );
}
