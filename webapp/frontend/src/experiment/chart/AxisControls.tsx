import { Group, Select, Switch } from '@mantine/core';

export interface AxisPick {
  label: string;
  width: number;
  value: string;
  choices: readonly { value: string; label: string }[];
  disabled?: boolean;
  onPick: (value: string) => void;
  testId: string;
}

export interface LogSwitch {
  label: 'log x' | 'log y';
  on: boolean;
  onSwitch: (on: boolean) => void;
  testId: string;
}

/** Controls above a figure: what its axes and colours show, and which of the axes are logarithmic. */
export function AxisControls({ picks, logs }: { picks: readonly AxisPick[]; logs: readonly LogSwitch[] }) {
  return (
    <Group gap={8} align="flex-end" mb="xs">
      {picks.map(({ label, width, value, choices, disabled = false, onPick, testId }) => (
        <Select
          key={testId}
          size="xs"
          label={label}
          w={width}
          value={value}
          data={[...choices]}
          disabled={disabled}
          searchable={choices.length > 12}
          allowDeselect={false}
          comboboxProps={{ width: 'max-content', position: 'bottom-start' }}
          onChange={(next) => next !== null && onPick(next)}
          data-testid={testId}
        />
      ))}
      <Group gap={12} h={30}>
        {logs.map(({ label, on, onSwitch, testId }) => (
          <Switch
            key={testId}
            size="xs"
            label={label}
            checked={on}
            onChange={(event) => onSwitch(event.currentTarget.checked)}
            data-testid={testId}
          />
        ))}
      </Group>
    </Group>
  );
}
