import { Text } from '@mantine/core';
import { useExpected } from '@/api/queries';
import type { Showcase } from '@/api/types';

/** What to expect of a showcase, with figures that the server predicts when it is asked. */
export function Expected({ showcase }: { showcase: Showcase }) {
  return (
    <Text size="sm" c="dimmed" data-testid={`expected-${showcase.name}`}>
      {useExpected(showcase)}
    </Text>
  );
}
