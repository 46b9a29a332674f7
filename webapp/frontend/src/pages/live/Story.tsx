import { Text } from '@mantine/core';
import { useShowcases } from '@/api/queries';
import type { RunDetail } from '@/api/types';

/** What to look for in the run of a showcase, which has its name; nothing in other runs. */
export function Story({ run }: { run: RunDetail }) {
  const showcase = useShowcases().data?.find(
    ({ title, request }) => title === run.name && request.strategy === run.strategy,
  );
  if (!showcase) return null;
  return (
    <Text size="sm" lh={1.35} mt={4} data-testid="story">
      {showcase.look_for}
    </Text>
  );
}
