import { Center } from '@mantine/core';
import { useRouteError } from 'react-router';
import { sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';

/** A page that failed to load or to draw: what happened, and a way on. */
export function RouteError() {
  return (
    <Center mih="100vh" p="xl">
      <ErrorPanel
        title="This page stopped"
        message={sentence(useRouteError())}
        onRetry={() => location.reload()}
      />
    </Center>
  );
}
