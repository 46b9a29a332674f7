import { Button } from '@mantine/core';
import { EmptyState } from './EmptyState';
import { Link, usePage } from './navigation';
import { useDocumentTitle } from './Page';

/** The page for an address that does not exist. */
export function NotFound() {
  const address = usePage();
  useDocumentTitle('No such page');
  return (
    <EmptyState
      level={1}
      title="There is no such page"
      text={`Nothing is at ${address}: the address is wrong, or the item was deleted.`}
    >
      <Button component={Link} to="/">
        Back to the start page
      </Button>
    </EmptyState>
  );
}
