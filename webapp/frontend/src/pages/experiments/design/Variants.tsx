import { ActionIcon, Button, Divider, Group, Popover, Stack, Text, TextInput, Tooltip } from '@mantine/core';
import { IconAdjustmentsHorizontal, IconPlus, IconTrash } from '@tabler/icons-react';
import type { StrategyRow } from '@/api/types';
import { anotherOf, type Method } from '@/experiment/data/design';
import { OpenPlan } from '@/run/params/OpenPlan';
import { fromParam, inWords } from '@/run/params/plan';
import { SchemaForm } from '@/run/params/SchemaForm';

interface Props {
  row: StrategyRow;
  /** All that take part; those of this strategy are edited here. */
  methods: readonly Method[];
  onChange: (methods: Method[]) => void;
  deviceNames: string[];
}

/** Parameters of a ticked strategy, which may take part several times with others. */
export function Variants({ row, methods, onChange, deviceNames }: Props) {
  const own = methods.filter(({ strategy }) => strategy === row.name);
  const last = own.at(-1);
  if (!last) return null;
  const replace = (old: Method, next: Method[]) =>
    onChange(methods.flatMap((method) => (method === old ? next : [method])));
  return (
    <Popover position="right-start" width={460} shadow="md" withArrow trapFocus>
      <Popover.Target>
        <Tooltip label="Parameters" position="top">
          <ActionIcon
            size="sm"
            variant="subtle"
            color="gray"
            aria-label={`Parameters of ${row.title}`}
            data-testid={`variants-${row.name}`}
          >
            <IconAdjustmentsHorizontal size={14} />
          </ActionIcon>
        </Tooltip>
      </Popover.Target>
      <Popover.Dropdown mah={560} style={{ overflowY: 'auto' }}>
        <Stack gap="sm">
          {own.map((method, at) => (
            <Stack key={at} gap="xs" data-testid={`variant-${row.name}-${at}`}>
              {at > 0 && <Divider />}
              <Group gap="xs" align="end" wrap="nowrap">
                <TextInput
                  size="xs"
                  flex={1}
                  label="Name in figures"
                  value={method.title}
                  maxLength={60}
                  onChange={(event) => replace(method, [{ ...method, title: event.currentTarget.value }])}
                />
                {own.length > 1 && (
                  <ActionIcon
                    variant="subtle"
                    color="red"
                    aria-label={`Remove ${method.title}`}
                    onClick={() => replace(method, [])}
                  >
                    <IconTrash size={16} />
                  </ActionIcon>
                )}
              </Group>
              <SchemaForm
                schema={row.params_schema}
                values={method.params}
                onChange={(params) => replace(method, [{ ...method, params }])}
                errorOf={() => undefined}
                deviceNames={deviceNames}
              />
              {'plan' in (row.params_schema.properties ?? {}) && (
                <HandPlan method={method} onChange={(params) => replace(method, [{ ...method, params }])} />
              )}
            </Stack>
          ))}
          <Divider />
          <Text size="xs" c="dimmed">
            The same strategy may take part several times with different parameters.
          </Text>
          <Button
            size="xs"
            variant="default"
            leftSection={<IconPlus size={14} />}
            onClick={() => replace(last, [last, anotherOf(last, methods)])}
            data-testid={`another-${row.name}`}
          >
            Add {row.title} once more
          </Button>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

interface HandPlanProps {
  method: Method;
  onChange: (params: Record<string, unknown>) => void;
}

/** How a person divided the model: from a file that New run's editor has saved, or from the run that is varied. */
function HandPlan({ method, onChange }: HandPlanProps) {
  const { plan: given, ...others } = method.params;
  const plan = fromParam(given);
  return (
    <Group gap="xs" justify="space-between">
      <Text size="xs" c="dimmed" flex={1} data-testid="variant-plan">
        {plan ? `Plan made by hand: ${inWords(plan)}.` : 'The strategy plans by itself.'}
      </Text>
      <OpenPlan onOpen={(opened) => onChange({ ...others, plan: opened })} />
      {plan && (
        <Button variant="subtle" size="xs" onClick={() => onChange(others)} data-testid="variant-own-plan">
          Let it plan
        </Button>
      )}
    </Group>
  );
}
