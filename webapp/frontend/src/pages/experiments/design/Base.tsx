import { Box, Group, SegmentedControl, Select, Text, Textarea } from '@mantine/core';
import type { ClusterRow, ClusterSpec, ModelRow } from '@/api/types';
import { ClusterPicture } from '@/cluster/ClusterPicture';
import { Fields } from '@/run/params/Fields';
import { type Draft, OF_ONE_MODEL, readsText, type Work } from '@/run/request/draft';
import { ModelBits } from '@/run/request/ModelBits';

interface Props {
  run: Draft;
  cluster: ClusterSpec | null;
  clusters: readonly ClusterRow[];
  models: readonly ModelRow[];
  onRun: (patch: Partial<Draft>) => void;
}

const FROZEN = 'frozen';
const WHOLE = { kind: 'number', integer: true, min: 1 } as const;

/** What all points share unless a factor varies it: cluster, model and workload. */
export function Base({ run, cluster, clusters, models, onRun }: Props) {
  const model = models.find((row) => row.name === run.model);
  const stored = clusters.find((row) => row.id === run.cluster_id);
  return (
    <>
      <Group wrap="nowrap" gap="sm" align="flex-end">
        <Select
          flex={1}
          label="Cluster"
          searchable
          allowDeselect={false}
          value={run.cluster ? FROZEN : run.cluster_id === null ? null : String(run.cluster_id)}
          data={[
            ...(run.cluster ? [{ value: FROZEN, label: `${run.cluster.name}, a copy of its own` }] : []),
            ...clusters.map(({ id, name, title }) => ({ value: String(id), label: title || name })),
          ]}
          onChange={(value) =>
            value && value !== FROZEN && onRun({ cluster_id: Number(value), cluster: null })
          }
          data-testid="design-cluster"
        />
        {cluster && (
          <Box w={96} flex="none">
            <ClusterPicture spec={cluster} layout={stored?.layout} width={96} height={58} />
          </Box>
        )}
      </Group>
      <Select
        mt="xs"
        label="Model"
        searchable
        allowDeselect={false}
        value={run.model}
        data={models.map(({ name, title }) => ({ value: name, label: `${name} — ${title}` }))}
        onChange={(name) => name && onRun({ model: name, randomWeights: false, ...OF_ONE_MODEL })}
        data-testid="design-model"
      />
      <Group mt="xs">
        <ModelBits weight_bits={run.weight_bits} activation_bits={run.activation_bits} onBits={onRun} />
      </Group>
      <Workload run={run} model={model} onRun={onRun} />
    </>
  );
}

function Workload({ run, model, onRun }: Pick<Props, 'run' | 'onRun'> & { model: ModelRow | undefined }) {
  const generates = model?.has_head ?? true;
  const asksText = readsText(model);
  const most = model?.max_positions;
  const change = (patch: Partial<Work>) => onRun({ workload: { ...run.workload, ...patch } });
  return (
    <>
      {asksText && (
        <Group justify="space-between" mt="sm" mb={4}>
          <Text size="sm" fw={500}>
            Prompt
          </Text>
          <SegmentedControl
            size="xs"
            value={run.promptKind}
            onChange={(kind) => onRun({ promptKind: kind as Draft['promptKind'] })}
            data={[
              { value: 'length', label: 'Random tokens' },
              { value: 'text', label: 'Text' },
            ]}
            data-testid="design-prompt-kind"
          />
        </Group>
      )}
      {asksText && run.promptKind === 'text' && (
        <Textarea
          autosize
          minRows={2}
          maxRows={4}
          size="xs"
          mb="xs"
          value={run.workload.prompt}
          aria-label="Prompt"
          onChange={(event) => change({ prompt: event.currentTarget.value })}
        />
      )}
      <Fields
        cols={3}
        size="xs"
        fields={[
          asksText &&
            run.promptKind === 'length' && {
              ...WHOLE,
              key: 'prompt_tokens',
              label: 'Prompt tokens',
              max: most,
            },
          generates && { ...WHOLE, key: 'new_tokens', label: 'New tokens', max: most },
          { ...WHOLE, key: 'requests', label: 'Requests', max: 64 },
        ]}
        values={run.workload}
        set={change}
        errorOf={() => undefined}
        testId={(key) => `design-${key.replaceAll('_', '-')}`}
      />
    </>
  );
}
