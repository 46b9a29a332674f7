import { Badge, Tooltip } from '@mantine/core';
import { IconFlag } from '@tabler/icons-react';
import { LABELS } from './cautions';
import type { Caution } from './comparison';

/** A badge for what makes a run differ from the baseline; its tip says how. `of`: the run. */
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
