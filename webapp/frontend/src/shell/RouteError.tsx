import { Center } from '@mantine/core';
import { useRouteError } from 'react-router';
import { sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';

/** Shown when a page failed to load or to render. */
export function RouteError() {
  return (
    <Center mih="100vh" p="xl">
      <ErrorPanel
        title="This page failed"
        message={sentence(useRouteError())}
        onRetry={() => location.reload()}
      />
    </Center>
  );
}
