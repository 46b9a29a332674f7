import { Box, Group, NumberInput, SegmentedControl, Select, SimpleGrid, Text, Textarea } from '@mantine/core';
import type { ClusterRow, ClusterSpec, ModelRow } from '@/api/types';
import { ClusterPicture } from '@/cluster/ClusterPicture';
import { type Draft, readsText } from '@/run/request/draft';
import { WeightBits } from '@/run/request/WeightBits';

interface Props {
  run: Draft;
  cluster: ClusterSpec | null;
  clusters: readonly ClusterRow[];
  models: readonly ModelRow[];
  onRun: (patch: Partial<Draft>) => void;
}

const FROZEN = 'frozen';

/** What all points share unless a factor varies it: cluster, model and workload. */
export function Base({ run, cluster, clusters, models, onRun }: Props) {
  const model = models.find((row) => row.name === run.model);
  const stored = clusters.find((row) => row.id === run.clusterId);
  return (
    <>
      <Group wrap="nowrap" gap="sm" align="flex-end">
        <Select
          flex={1}
          label="Cluster"
          searchable
          allowDeselect={false}
          value={run.frozen ? FROZEN : run.clusterId === null ? null : String(run.clusterId)}
          data={[
            ...(run.frozen ? [{ value: FROZEN, label: `${run.frozen.name}, a copy of its own` }] : []),
            ...clusters.map(({ id, name, title }) => ({ value: String(id), label: title || name })),
          ]}
          onChange={(value) => value && value !== FROZEN && onRun({ clusterId: Number(value), frozen: null })}
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
        onChange={(name) => name && onRun({ model: name, randomWeights: false, draftModel: null })}
        data-testid="design-model"
      />
      <Box mt="xs">
        <WeightBits bits={run.weightBits} onBits={(weightBits) => onRun({ weightBits })} />
      </Box>
      <Workload run={run} model={model} onRun={onRun} />
    </>
  );
}

function Workload({ run, model, onRun }: Pick<Props, 'run' | 'onRun'> & { model: ModelRow | undefined }) {
  const generates = model?.has_head ?? true;
  const asksText = readsText(model);
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
          value={run.prompt}
          aria-label="Prompt"
          onChange={(event) => onRun({ prompt: event.currentTarget.value })}
        />
      )}
      <SimpleGrid cols={3} spacing="xs">
        {asksText && run.promptKind === 'length' && (
          <Whole
            label="Prompt tokens"
            value={run.promptTokens}
            onChange={(promptTokens) => onRun({ promptTokens })}
            max={model?.max_positions}
          />
        )}
        {generates && (
          <Whole
            label="New tokens"
            value={run.newTokens}
            onChange={(newTokens) => onRun({ newTokens })}
            max={model?.max_positions}
          />
        )}
        <Whole label="Requests" value={run.requests} onChange={(requests) => onRun({ requests })} max={64} />
      </SimpleGrid>
    </>
  );
}

interface WholeProps {
  label: string;
  value: number;
  max?: number;
  onChange: (value: number) => void;
}

function Whole({ label, value, max, onChange }: WholeProps) {
  return (
    <NumberInput
      size="xs"
      label={label}
      value={value}
      min={1}
      max={max}
      allowDecimal={false}
      allowNegative={false}
      data-testid={`design-${label.toLowerCase().replace(' ', '-')}`}
      onChange={(next) => typeof next === 'number' && next >= 1 && onChange(next)}
    />
  );
}
