import { Text } from '@mantine/core';
import { Page } from '@/components/Page';

export function StartPage() {
  return (
    <Page title="Start" about="Draw a cluster, run a transformer on it, see where the time goes.">
      <Text>EdgeLoom</Text>
    </Page>
  );
}
