import { Badge, Tooltip } from '@mantine/core';
import { IconFlag } from '@tabler/icons-react';
import type { Caution } from './comparison';

export const LABELS: Record<Caution['kind'], string> = {
  outcome: 'not finished',
  fidelity: 'not valid',
  model: 'other model',
  numbers: 'other numbers',
  workload: 'other workload',
  seed: 'other seed',
  world: 'predicted and measured',
};

/** In which way a run differs from the baseline; its tip says how. `of`: the run. */
export function CautionBadge({ caution: { kind, sentence, decides }, of }: { caution: Caution; of: number }) {
  return (
    <Tooltip label={sentence}>
      <Badge
        size="xs"
        color={decides ? 'orange' : 'gray'}
        variant="light"
        tt="none"
        leftSection={decides && <IconFlag size={10} />}
        tabIndex={0}
        data-testid={`caution-${kind}-${of}`}
      >
        {LABELS[kind]}
      </Badge>
    </Tooltip>
  );
}
