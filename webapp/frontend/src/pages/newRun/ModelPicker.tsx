import { Badge, Group, SegmentedControl, Select, Text } from '@mantine/core';
import type { ModelRow } from '@/api/types';
import { bytes, human } from '@/format/units';
import type { Draft } from '@/run/request/draft';
import { ModelBits } from '@/run/request/ModelBits';

type InBits = Pick<Draft, 'weight_bits' | 'activation_bits'>;

interface Props {
  models: ModelRow[];
  model: string;
  randomWeights: boolean;
  bits: InBits;
  onModel: (name: string) => void;
  onRandomWeights: (random: boolean) => void;
  onBits: (bits: Partial<InBits>) => void;
}

/** Chooses the model, whether its weights are trained or random, and in how many bits. */
export function ModelPicker({ models, model, randomWeights, bits, onModel, onRandomWeights, onBits }: Props) {
  const chosen = models.find((row) => row.name === model);
  return (
    <>
      <Group align="flex-start">
        <Select
          flex={1}
          miw={180}
          searchable
          allowDeselect={false}
          value={model}
          data-testid="model"
          aria-label="Model"
          maxDropdownHeight={320}
          data={models.map(({ name, title }) => ({ value: name, label: `${name} — ${title}` }))}
          onChange={(name) => name && onModel(name)}
          renderOption={({ option }) => <ModelOption row={models.find((row) => row.name === option.value)} />}
        />
        {chosen?.trained && (
          <SegmentedControl
            value={randomWeights ? 'random' : 'trained'}
            onChange={(value) => onRandomWeights(value === 'random')}
            data-testid="weights"
            data={[
              { value: 'trained', label: 'Trained weights' },
              { value: 'random', label: 'Random' },
            ]}
          />
        )}
        <ModelBits {...bits} onBits={onBits} />
      </Group>
      {chosen && (
        <Group gap={8} mt="xs">
          <Kind row={chosen} random={randomWeights} />
          <Text size="sm" c="dimmed">
            {chosen.num_layers} layers · {chosen.num_heads} heads
            {chosen.num_kv_heads < chosen.num_heads && ` (${chosen.num_kv_heads} for keys and values)`} ·
            hidden size {chosen.hidden_size}
            {' · '}
            {human(chosen.num_parameters, '').trim()} parameters · {bytes(chosen.weight_bytes)}
            {bits.weight_bits && ` before its matrices are rounded to ${bits.weight_bits} bits`}
          </Text>
        </Group>
      )}
    </>
  );
}

function ModelOption({ row }: { row: ModelRow | undefined }) {
  if (!row) return null;
  return (
    <Group justify="space-between" wrap="nowrap" flex={1} gap="sm">
      <div style={{ minWidth: 0 }}>
        <Text size="sm" fw={500}>
          {row.name}
        </Text>
        <Text size="xs" c="dimmed" truncate>
          {row.title}
        </Text>
      </div>
      <Group gap={8} wrap="nowrap">
        <Text size="xs" c="dimmed">
          {bytes(row.weight_bytes)}
        </Text>
        <Kind row={row} random={false} />
      </Group>
    </Group>
  );
}

function Kind({ row, random }: { row: ModelRow; random: boolean }) {
  return row.trained && !random ? (
    <Badge color="teal" variant="light">
      trained
    </Badge>
  ) : (
    <Badge color="gray" variant="light">
      random weights
    </Badge>
  );
}
