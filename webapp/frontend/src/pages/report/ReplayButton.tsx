import { Button, Modal, Select, Stack, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconRepeat } from '@tabler/icons-react';
import { useState } from 'react';
import { useNavigate } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { useCatalogue, useChange } from '@/api/queries';
import type { RunDetail } from '@/api/types';
import { ErrorPanel } from '@/components/ErrorPanel';

/** Starts the same run again with its live changes as scenario, on request with another strategy. */
export function ReplayButton({ run, enabled }: { run: RunDetail; enabled: boolean }) {
  const [opened, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button
        leftSection={<IconRepeat size={16} />}
        onClick={open}
        disabled={!enabled}
        data-testid="replay"
        title={enabled ? undefined : 'Only operators may start runs'}
      >
        Replay
      </Button>
      <Modal opened={opened} onClose={close} title="Replay this run" centered>
        <ReplayForm run={run} />
      </Modal>
    </>
  );
}

function ReplayForm({ run }: { run: RunDetail }) {
  const catalogue = useCatalogue();
  const navigate = useNavigate();
  const [strategy, setStrategy] = useState(run.strategy);
  const [name, setName] = useState('');
  const changes = (run.report?.scenario ?? run.spec.scenario).changes.length;
  const replay = useChange('runs', (body: { strategy?: string; name?: string }) =>
    api.post<{ id: number }>(`/runs/${run.id}/replay`, body),
  );
  const start = () =>
    replay.mutate(
      { ...(strategy === run.strategy ? {} : { strategy }), ...(name ? { name } : {}) },
      { onSuccess: ({ id }) => navigate(`/runs/${id}`) },
    );
  return (
    <Stack gap="sm">
      <Text size="sm">
        Same cluster, model, workload and seed
        {changes > 0
          ? `, and the ${changes === 1 ? 'one change' : `${changes} changes`} of the cluster at the same virtual times`
          : ''}
        .
      </Text>
      <Select
        label="Strategy"
        value={strategy}
        allowDeselect={false}
        data-testid="replay-strategy"
        data={(catalogue.data?.strategies ?? []).map((row) => ({ value: row.name, label: row.title }))}
        description={
          strategy === run.strategy ? 'with the same parameters' : 'with its own default parameters'
        }
        onChange={(value) => setStrategy(value ?? run.strategy)}
      />
      <TextInput
        label="Name"
        placeholder={`${strategy} on ${run.cluster_name}`}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      {replay.isError && <ErrorPanel message={sentence(replay.error)} />}
      <Button onClick={start} loading={replay.isPending || replay.isSuccess} data-testid="replay-start">
        Start the replay
      </Button>
    </Stack>
  );
}
