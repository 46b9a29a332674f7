import { ActionIcon, Anchor, Badge, Group, Radio } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import { Link } from '@/components/navigation';
import { seriesColor } from '@/theme/seriesColors';
import { CautionBadge } from './CautionBadge';
import type { ComparedRun } from './comparison';
import classes from './compare.module.css';
import { useHighlighted } from './highlight';

interface Props {
  run: ComparedRun;
  at: number;
  isBase: boolean;
  onBaseline: (id: number) => void;
  onRemove: ((id: number) => void) | undefined;
}

/** A run's name, whether it is the baseline, and why its figures cannot simply be compared. */
export function RunHead({ run, at, isBase, onBaseline, onRemove }: Props) {
  const highlighted = useHighlighted([run.id]);
  return (
    <div className={classes.head} {...highlighted}>
      <Group gap={6} wrap="nowrap" justify="space-between">
        <Anchor component={Link} to={`/runs/${run.id}`} className={classes.runName} title={run.name}>
          <span className={classes.dot} style={{ background: seriesColor(at) }} />
          <span className={classes.number}>{run.id}</span> {run.name}
        </Anchor>
        {onRemove && (
          <ActionIcon
            size="xs"
            variant="subtle"
            color="gray"
            onClick={() => onRemove(run.id)}
            aria-label={`Remove run ${run.id}`}
            data-testid={`remove-${run.id}`}
          >
            <IconX size={13} />
          </ActionIcon>
        )}
      </Group>
      <Group gap={6}>
        <Radio
          size="xs"
          label="baseline"
          checked={isBase}
          onChange={() => onBaseline(run.id)}
          name="baseline"
          data-testid={`baseline-${run.id}`}
        />
        {run.correct === false && (
          <Badge size="xs" color="red" variant="light" tt="none">
            not correct
          </Badge>
        )}
        {isBase && run.valid === false && (
          <Badge size="xs" color="orange" variant="light" tt="none">
            not valid
          </Badge>
        )}
        {run.world !== 'emulated' && (
          <Badge size="xs" color="gray" variant="light" tt="none">
            {run.world}
          </Badge>
        )}
        {run.cautions.map((caution) => (
          <CautionBadge key={caution.kind} caution={caution} of={run.id} />
        ))}
      </Group>
    </div>
  );
}
