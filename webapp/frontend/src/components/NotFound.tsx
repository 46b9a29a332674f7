import { Button } from '@mantine/core';
import { Link } from '@/components/navigation';
import { EmptyState } from './EmptyState';

/** The page for an address that does not exist. */
export function NotFound() {
  return (
    <EmptyState title="There is no such page" text="The address is wrong, or the item was deleted.">
      <Button component={Link} to="/">
        Back to the start page
      </Button>
    </EmptyState>
  );
}
