import {
  ActionIcon,
  Button,
  Group,
  MultiSelect,
  NumberInput,
  Popover,
  RangeSlider,
  SegmentedControl,
  Select,
  Text,
  TextInput,
} from '@mantine/core';
import { IconAdjustmentsHorizontal, IconX } from '@tabler/icons-react';
import { useState } from 'react';
import { fromSI } from '@/format/quantities';
import { type FactorDraft, levelsOf, quantityOf } from '@/experiment/data/design';
import { levelsText, spread } from '@/experiment/data/levels';
import classes from './design.module.css';

interface Props {
  factor: FactorDraft;
  onChange: (factor: FactorDraft) => void;
  onRemove: () => void;
  /** The server's message about this factor. */
  error?: string;
}

/** One factor: its values as a list or a range, and, if it concerns links or devices, which of them. */
export function FactorCard({ factor, onChange, onRemove, error }: Props) {
  const { option, targets, text, unit, chosen } = factor;
  const { problem } = levelsOf(factor);
  const quantity = quantityOf(option.unit);
  return (
    <div className={classes.factor} data-testid={`factor-${option.name}`}>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text size="sm" fw={500} component="label" htmlFor={`factor-${option.name}`}>
          {option.title}
        </Text>
        <ActionIcon
          variant="subtle"
          color="gray"
          size="sm"
          onClick={onRemove}
          aria-label={`Remove ${option.title}`}
          data-testid={`remove-${option.name}`}
        >
          <IconX size={14} />
        </ActionIcon>
      </Group>
      {option.kind === 'choice' ? (
        <MultiSelect
          id={`factor-${option.name}`}
          size="xs"
          searchable
          hidePickedOptions
          value={chosen.map(String)}
          data={option.choices.map(({ value, label }) => ({ value: String(value), label }))}
          error={problem ?? error}
          onChange={(picked) =>
            onChange({
              ...factor,
              chosen: picked.flatMap(
                (one) => option.choices.find(({ value }) => String(value) === one)?.value ?? [],
              ),
            })
          }
          data-testid={`values-${option.name}`}
        />
      ) : (
        <Group gap={6} wrap="nowrap" align="flex-start">
          <TextInput
            id={`factor-${option.name}`}
            size="xs"
            flex={1}
            value={text}
            placeholder="10, 50, 100"
            error={problem ?? error}
            onChange={(event) => onChange({ ...factor, text: event.currentTarget.value })}
            data-testid={`values-${option.name}`}
          />
          {quantity.length > 1 && (
            <Select
              size="xs"
              w={92}
              allowDeselect={false}
              aria-label={`Unit of ${option.title}`}
              value={unit}
              data={quantity.map(({ label }) => label)}
              onChange={(label) => label && onChange({ ...factor, unit: label })}
              data-testid={`unit-${option.name}`}
            />
          )}
          <RangeButton factor={factor} onChange={onChange} />
        </Group>
      )}
      {option.targets.length > 1 && (
        <MultiSelect
          size="xs"
          clearable
          searchable
          aria-label={`Which ones: ${option.title}`}
          placeholder={
            targets.length === 0 ? `all ${option.targets.length}; choose to restrict it` : undefined
          }
          value={[...targets]}
          data={[...option.targets]}
          onChange={(some) => onChange({ ...factor, targets: some })}
          data-testid={`targets-${option.name}`}
        />
      )}
    </div>
  );
}

const STEPS = 1000;

/** Fills in values from a range: two handles, how many values, and whether by equal ratios or evenly. */
function RangeButton({ factor, onChange }: Pick<Props, 'factor' | 'onChange'>) {
  const { option, unit: label } = factor;
  const unit = quantityOf(option.unit).find((one) => one.label === label) ?? quantityOf(option.unit)[0];
  const values = (levelsOf(factor).values ?? []).map(Number);
  const whole = option.kind === 'whole';
  const [count, setCount] = useState(values.length > 1 ? values.length : 5);
  const [log, setLog] = useState(!whole);
  const low = Math.min(...values, Number(option.current) || 1);
  const high = Math.max(...values, Number(option.current) || 1);
  const floor = Math.max(option.low ?? 0, whole ? 1 : Math.min(low, (Number(option.current) || low) / 100));
  const ceiling = Math.min(option.high ?? Infinity, Math.max(high, (Number(option.current) || high) * 100));
  const place = (value: number) =>
    log
      ? (Math.log(value / floor) / Math.log(ceiling / floor)) * STEPS
      : ((value - floor) / (ceiling - floor)) * STEPS;
  const valueAt = (at: number) => {
    const value = log ? floor * (ceiling / floor) ** (at / STEPS) : floor + ((ceiling - floor) * at) / STEPS;
    return whole ? Math.round(value) : Number(value.toPrecision(2));
  };
  const fill = (from: number, to: number, number: number, byRatio: boolean) =>
    onChange({ ...factor, text: levelsText(spread(from, to, number, { log: byRatio, whole }), unit) });
  const say = (value: number) => `${fromSI(value, unit)} ${unit.label}`;
  if (!(ceiling > floor)) return null;
  return (
    <Popover width={300} position="bottom-end" withArrow trapFocus>
      <Popover.Target>
        <ActionIcon
          variant="default"
          size={30}
          aria-label={`Range of ${option.title}`}
          data-testid={`range-${option.name}`}
        >
          <IconAdjustmentsHorizontal size={15} />
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown>
        <Text size="xs" c="dimmed" mb={6}>
          {say(low)} to {say(high)}
        </Text>
        <RangeSlider
          min={0}
          max={STEPS}
          minRange={0}
          label={(at) => say(valueAt(at))}
          value={[place(low), place(high)]}
          onChange={([from, to]) => fill(valueAt(from), valueAt(to), count, log)}
          thumbFromLabel={`Lowest ${option.title}`}
          thumbToLabel={`Highest ${option.title}`}
          mb="md"
        />
        <Group gap="xs" grow align="flex-end">
          <NumberInput
            size="xs"
            label="Values"
            min={2}
            max={50}
            value={count}
            onChange={(next) => {
              if (typeof next !== 'number' || next < 2) return;
              setCount(next);
              fill(low, high, next, log);
            }}
          />
          <SegmentedControl
            size="xs"
            value={log ? 'log' : 'linear'}
            onChange={(next) => {
              setLog(next === 'log');
              fill(low, high, count, next === 'log');
            }}
            data={[
              { value: 'log', label: 'Ratios' },
              { value: 'linear', label: 'Even' },
            ]}
          />
        </Group>
      </Popover.Dropdown>
    </Popover>
  );
}

interface AddProps {
  options: readonly FactorDraft['option'][];
  onAdd: (option: FactorDraft['option']) => void;
}

/** A search field over everything that can be varied on this cluster. */
export function AddFactor({ options, onAdd }: AddProps) {
  const groups = [...new Set(options.map(({ group }) => group))];
  return (
    <Select
      size="sm"
      searchable
      value={null}
      placeholder="Add a factor: rate, memory, tokens…"
      nothingFoundMessage="No factor has that name"
      aria-label="Add a factor"
      maxDropdownHeight={340}
      disabled={options.length === 0}
      data={groups.map((group) => ({
        group,
        items: options
          .filter((option) => option.group === group)
          .map(({ path, title }) => ({ value: path, label: title })),
      }))}
      onChange={(path) => {
        const option = options.find((one) => one.path === path);
        if (option) onAdd(option);
      }}
      data-testid="add-factor"
    />
  );
}

/** Pixels of two lines of buttons: as many as there are, kept free before they are known. */
const SUGGESTED_HEIGHT = 50;

/** The factors that most questions are about, one click away. */
export function Suggested({ options, onAdd }: AddProps) {
  return (
    <Group gap={6} mih={SUGGESTED_HEIGHT} align="flex-start">
      {options.map((option) => (
        <Button
          key={option.path}
          size="compact-xs"
          variant="default"
          onClick={() => onAdd(option)}
          data-testid={`suggest-${option.name}`}
        >
          + {option.title}
        </Button>
      ))}
    </Group>
  );
}
