import { Button, Group, NumberInput, Text } from '@mantine/core';
import { Fragment, useState } from 'react';
import type { DeviceSpec, Plan, RunReport } from '@/api/types';
import { seconds } from '@/format/units';
import { deviceColor } from '@/theme/deviceColors';
import { amount, type Division, divisionOf, fromParam, toParam, unitsOf, withAmount } from './division';
import { DivisionBar } from './DivisionBar';
import classes from './plan.module.css';

interface Props {
  /** The parameter `plan`; null while the strategy divides. */
  value: unknown;
  onChange: (value: Record<string, unknown> | null) => void;
  /** Whether the strategy takes a division made by hand. */
  takes: boolean;
  plan: Plan | undefined;
  report: RunReport | undefined;
  devices: readonly DeviceSpec[];
  waiting: boolean;
}

/** Moves layers, heads and columns, or positions between devices by hand; the prediction follows. */
export function PlanEditor({ value, onChange, takes, plan, report, devices, waiting }: Props) {
  const [own_s, setOwn_s] = useState<number | null>(null);
  const division = fromParam(value);
  const names = devices.map((device) => device.name);
  const workers = devices.filter((device) => device.role === 'worker').map((device) => device.name);
  const planned = plan && divisionOf(plan, names, workers);
  if (!takes) {
    return (
      <Text size="sm" c="dimmed" data-testid="plan-not-by-hand">
        This plan cannot be divided by hand: more than its devices’ shares follows from the strategy’s rules.
      </Text>
    );
  }
  if (!division) {
    const begin = () => {
      if (!planned) return;
      setOwn_s(report?.latency_s ?? null);
      onChange(toParam(planned));
    };
    return (
      <Button
        variant="default"
        size="xs"
        disabled={!planned || waiting}
        onClick={begin}
        data-testid="plan-edit"
      >
        Divide it by hand
      </Button>
    );
  }
  const colorOf = (device: string) => deviceColor(names.indexOf(device));
  const set = (next: Division) => onChange(toParam(next));
  const units = unitsOf(division);
  const now_s = report?.latency_s ?? 0;
  return (
    <div data-testid="plan-editor">
      {units.map((unit) => (
        <div key={unit} style={{ marginBottom: 10 }}>
          <Text size="xs" c="dimmed" mb={6}>
            {unit}
          </Text>
          <DivisionBar division={division} unit={unit} colorOf={colorOf} onChange={set} />
        </div>
      ))}
      <div
        className={classes.fields}
        style={{ gridTemplateColumns: `minmax(80px, 1fr) repeat(${units.length}, 110px)` }}
      >
        <span>device</span>
        {units.map((unit) => (
          <span key={unit}>{unit}</span>
        ))}
        {division.shares.map((share, index) => (
          <Fragment key={share.device}>
            <div className={classes.device}>
              <i className={classes.dot} style={{ background: colorOf(share.device) }} />
              {share.device}
            </div>
            {units.map((unit) => (
              <NumberInput
                key={unit}
                size="xs"
                min={0}
                allowDecimal={false}
                aria-label={`${unit} on ${share.device}`}
                value={amount(share, unit)}
                onChange={(next) => typeof next === 'number' && set(withAmount(division, unit, index, next))}
                data-testid={`plan-${unit}-${share.device}`}
              />
            ))}
          </Fragment>
        ))}
      </div>
      <Group justify="space-between" mt="md">
        <Text size="sm" c="dimmed" data-testid="plan-effect">
          {own_s !== null && !waiting && now_s > 0 && effect(own_s, now_s)}
        </Text>
        <Button variant="default" size="xs" onClick={() => onChange(null)} data-testid="plan-own">
          Let the strategy divide
        </Button>
      </Group>
    </div>
  );
}

function effect(own_s: number, now_s: number): string {
  const change = now_s / own_s - 1;
  const words =
    Math.abs(change) < 0.005
      ? 'as long as'
      : `${(100 * Math.abs(change)).toFixed(0)} % ${change > 0 ? 'longer' : 'shorter'} than`;
  return `All requests take ${seconds(now_s)}, ${words} with the strategy’s own plan (${seconds(own_s)}).`;
}
