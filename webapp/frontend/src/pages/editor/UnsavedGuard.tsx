import { Button, Group, Modal, Text } from '@mantine/core';
import { useEffect } from 'react';
import { useGuard } from '@/components/navigation';

/** Asks before leaving with unsaved changes; when the tab is closed, the browser asks. */
export function UnsavedGuard({ unsaved }: { unsaved: boolean }) {
  const { asked, stay, leave } = useGuard(unsaved);
  useEffect(() => {
    if (!unsaved) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [unsaved]);
  return (
    <Modal opened={asked} onClose={stay} title="Leave without saving?" centered size="sm">
      <Text size="sm">Changes to this cluster are not saved.</Text>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={stay} data-testid="stay">
          Stay
        </Button>
        <Button color="red" variant="light" onClick={leave} data-testid="leave">
          Leave
        </Button>
      </Group>
    </Modal>
  );
}
