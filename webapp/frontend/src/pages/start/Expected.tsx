import { Skeleton, Text } from '@mantine/core';
import { useExpected } from '@/api/queries';

/** What to expect of a showcase, with figures that the server predicts when it is asked. */
export function Expected({ showcase }: { showcase: string }) {
  const expected = useExpected(showcase);
  if (expected === null) return <Skeleton height={40} role="status" aria-label="Being predicted" />;
  return (
    <Text size="sm" c="dimmed" data-testid={`expected-${showcase}`}>
      {expected}
    </Text>
  );
}
