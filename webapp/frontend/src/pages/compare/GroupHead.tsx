import { Anchor, Badge, Group, Radio, Text } from '@mantine/core';
import { Link } from '@/components/navigation';
import { CautionBadge } from './CautionBadge';
import type { Column, ComparedRun } from './comparison';
import classes from './compare.module.css';
import { useHighlighted } from './highlight';

interface Props {
  column: Column;
  runs: readonly ComparedRun[];
  onBaseline: (id: number) => void;
}

/** What tells a group of repeats from others, its runs, and why their figures cannot simply be compared. */
export function GroupHead({ column: { label, is_base, cautions }, runs, onBaseline }: Props) {
  const [first] = runs;
  const highlighted = useHighlighted(runs.map(({ id }) => id));
  const wrong = runs.filter(({ correct }) => correct === false);
  return (
    <div className={classes.head} data-testid={`group-${first?.id}`} {...highlighted}>
      <span className={classes.groupName}>{label}</span>
      <Text size="xs" c="dimmed">
        {runs.length === 1 ? 'run' : `${runs.length} runs:`}{' '}
        {runs.map(({ id, name }, at) => (
          <span key={id}>
            {at > 0 && ', '}
            <Anchor component={Link} to={`/runs/${id}`} size="xs" title={name}>
              {id}
            </Anchor>
          </span>
        ))}
      </Text>
      <Group gap={6}>
        <Radio
          size="xs"
          label="baseline"
          checked={is_base}
          onChange={() => first && onBaseline(first.id)}
          name="baseline"
          data-testid={`baseline-${first?.id}`}
        />
        {wrong.length > 0 && (
          <Badge size="xs" color="red" variant="light" tt="none">
            {wrong.length} not correct
          </Badge>
        )}
        {is_base && runs.length === 1 && first?.valid === false && (
          <Badge size="xs" color="orange" variant="light" tt="none">
            not valid
          </Badge>
        )}
        {first && first.world !== 'emulated' && (
          <Badge size="xs" color="gray" variant="light" tt="none">
            {first.world}
          </Badge>
        )}
        {cautions.map((caution) => (
          <CautionBadge key={caution.kind} caution={caution} of={first?.id ?? 0} />
        ))}
      </Group>
    </div>
  );
}
