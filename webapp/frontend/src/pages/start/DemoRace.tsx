import { Skeleton } from '@mantine/core';
import { Suspense } from 'react';
import { useMayWrite, useShowcases } from '@/api/queries';
import { later } from '@/components/later';
import { demoOf } from './demo';

const Race = later(async () => (await import('@/race/Race')).Race);

/** Two methods race with the demo's question: loaded after the page; for who may ask for predictions. */
export function DemoRace() {
  const demo = demoOf(useShowcases().data);
  const mayWrite = useMayWrite();
  if (!demo || !mayWrite) return null;
  return (
    <Suspense fallback={<Skeleton height={420} radius="md" />}>
      <Race key={demo.name} showcase={demo} />
    </Suspense>
  );
}
