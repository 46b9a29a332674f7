import { Button } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconCopy } from '@tabler/icons-react';
import { useNavigate } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { useChange, useMayWrite } from '@/api/queries';
import { useShipped } from '@/experiment/data/queries';

/** Stores a copy of the shipped experiment of this name, and opens it. */
export function CopyButton({ name }: { name: string }) {
  const navigate = useNavigate();
  const shipped = useShipped();
  const mayWrite = useMayWrite();
  const store = useChange('experiments', () => {
    const experiment = shipped.data?.find((one) => one.name === name)?.experiment;
    return api.post<{ id: number }>('/experiments', { experiment });
  });
  const copy = () =>
    store.mutate(undefined, {
      onSuccess: ({ id }) => navigate(`/experiments/${id}`),
      onError: (error) => notifications.show({ color: 'red', title: name, message: sentence(error) }),
    });
  if (!mayWrite) return null;
  return (
    <Button
      size="xs"
      variant="default"
      style={{ flexShrink: 0 }}
      leftSection={<IconCopy size={14} />}
      disabled={!shipped.data}
      loading={store.isPending || store.isSuccess}
      onClick={copy}
      data-testid={`copy-${name}`}
    >
      Use this experiment
    </Button>
  );
}
