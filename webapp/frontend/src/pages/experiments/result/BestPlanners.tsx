import { Button, Group, Text } from '@mantine/core';
import { Link } from '@/components/navigation';
import { usePlanners } from '@/experiment/data/queries';

interface Props {
  id: number;
  token: string;
  mayChange: boolean;
}

/** What planner=best would give methods that followed their papers' rules, and a way to add it as variants. */
export function BestPlanners({ id, token, mayChange }: Props) {
  const told = usePlanners(id, token, true).data?.told;
  if (!told) return null;
  return (
    <Group gap="sm" data-testid="best-planners">
      <Text size="sm">{told}</Text>
      {mayChange && (
        <Button
          component={Link}
          to={`/experiments/new?from=${id}&planner=best`}
          size="compact-sm"
          variant="light"
          data-testid="add-best-planners"
        >
          Add as variants
        </Button>
      )}
    </Group>
  );
}
