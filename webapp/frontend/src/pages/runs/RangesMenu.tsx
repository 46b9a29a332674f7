import { ActionIcon, Button, Group, NumberInput, Popover, Select, Stack, Text } from '@mantine/core';
import { IconAdjustmentsHorizontal, IconX } from '@tabler/icons-react';
import type { ColumnSpec } from '@/run/table/columns';
import type { Range } from '@/run/table/table';

interface Props {
  ranges: readonly Range[];
  onChange: (ranges: Range[]) => void;
  /** Numeric columns. */
  columns: readonly ColumnSpec[];
}

/** Limits on figures and numeric parameters, in SI units. */
export function RangesMenu({ ranges, onChange, columns }: Props) {
  const free = columns.filter(({ key }) => !ranges.some((range) => range.key === key));
  const put = (at: number, patch: Partial<Range>) =>
    onChange(ranges.map((range, place) => (place === at ? { ...range, ...patch } : range)));
  return (
    <Popover position="bottom-start" withArrow shadow="md" trapFocus>
      <Popover.Target>
        <Button
          variant={ranges.length > 0 ? 'light' : 'default'}
          leftSection={<IconAdjustmentsHorizontal size={16} />}
          data-testid="ranges"
        >
          Ranges{ranges.length > 0 && ` (${ranges.length})`}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs">
          <Text size="xs" c="dimmed">
            In SI units: seconds, bytes, joules.
          </Text>
          {ranges.map((range, at) => (
            <Group key={range.key} gap="xs" wrap="nowrap" data-testid={`range-${range.key}`}>
              <Text size="sm" w={110} truncate>
                {columns.find(({ key }) => key === range.key)?.title ?? range.key}
              </Text>
              <Bound value={range.min} label="from" onChange={(min) => put(at, { min })} />
              <Bound value={range.max} label="to" onChange={(max) => put(at, { max })} />
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label="Remove the range"
                onClick={() => onChange(ranges.filter((one) => one !== range))}
              >
                <IconX size={15} />
              </ActionIcon>
            </Group>
          ))}
          <Select
            size="xs"
            placeholder="Add a figure or parameter"
            aria-label="Add a range"
            searchable
            value={null}
            data={free.map(({ key, title }) => ({ value: key, label: title }))}
            onChange={(key) => key && onChange([...ranges, { key, min: null, max: null }])}
            comboboxProps={{ withinPortal: false }}
            data-testid="add-range"
          />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

interface BoundProps {
  value: number | null;
  label: string;
  onChange: (value: number | null) => void;
}

function Bound({ value, label, onChange }: BoundProps) {
  return (
    <NumberInput
      size="xs"
      w={104}
      placeholder={label}
      aria-label={label}
      hideControls
      value={value ?? ''}
      onChange={(next) => onChange(typeof next === 'number' ? next : null)}
    />
  );
}
