import { Button, Group, Select, Text } from '@mantine/core';
import { IconArrowBackUp, IconDownload } from '@tabler/icons-react';
import { useEffect, useRef, useState } from 'react';
import type { DeviceSpec, EditablePlan, PlanByHand, RunReport } from '@/api/types';
import { OpenPlan } from '@/run/params/OpenPlan';
import { fromParam } from '@/run/params/plan';
import { deviceColor } from '@/theme/deviceColors';
import { DivisionBar } from './DivisionBar';
import { Effect } from './Effect';
import { alone, amount, completed, furtherOf, isDivided, TITLES, toParam } from './handPlan';
import { MoveForm } from './MoveForm';
import classes from './plan.module.css';
import { ShareTable } from './ShareTable';

interface Props {
  /** The parameter `plan`; null while the strategy plans. */
  value: unknown;
  onChange: (value: Record<string, unknown> | null) => void;
  /** The plan of the last prediction, as a person may edit it; null if the strategy takes none. */
  editable: EditablePlan | null | undefined;
  /** The prediction with this plan, and that with the strategy's own; undefined while there is none. */
  report: RunReport | undefined;
  own: RunReport | undefined;
  devices: readonly DeviceSpec[];
  waiting: boolean;
  /** Why this plan is refused; null if it is not. */
  refusal: string | null;
  /** Begin to edit as soon as there is a plan. */
  begin: boolean;
}

/** Moves layers, heads, columns or rows between devices by hand; the prediction follows. */
export function PlanEditor({
  value,
  onChange,
  editable,
  report,
  own,
  devices,
  waiting,
  refusal,
  begin,
}: Props) {
  const [edits, setEdits] = useState<readonly PlanByHand[]>([]);
  const begun = useRef(false);
  const workers = devices.filter((device) => device.role === 'worker').map((device) => device.name);
  const [known, setKnown] = useState<EditablePlan['units']>([]);
  const units = editable?.units ?? known; // a refused plan has no prediction, and is edited all the same
  const shown =
    edits.at(-1) ?? (value && editable ? completed(fromParam(value) ?? editable.plan, workers) : null);
  const put = (plan: PlanByHand) => {
    if (plan === shown) return;
    setKnown(units);
    setEdits([...(edits.length || !shown ? edits : [shown]), plan]);
    onChange(toParam(plan));
  };
  const start = () => editable && put(completed(editable.plan, workers));
  const leave = () => {
    setEdits([]);
    onChange(null);
  };
  const ready = Boolean(editable) && !waiting;
  useEffect(() => {
    if (!begin || begun.current || !ready || value) return;
    begun.current = true;
    start();
  });
  if (editable === null)
    return (
      <Text size="sm" c="dimmed" data-testid="plan-not-by-hand">
        This strategy takes no plans made by hand.
      </Text>
    );
  if (!value || !shown)
    return (
      <Group gap="xs">
        <Button variant="default" size="xs" disabled={!ready} onClick={start} data-testid="plan-edit">
          Edit this plan
        </Button>
        <OpenPlan onOpen={(plan) => put(completed(plan, workers))} />
        {Boolean(value) && refusal && <LeaveButton onLeave={leave} />}
      </Group>
    );
  const names = devices.map((device) => device.name);
  const colorOf = (device: string) => deviceColor(names.indexOf(device));
  const undo = () => {
    const earlier = edits.slice(0, -1);
    const last = earlier.at(-1);
    if (!last) return;
    setEdits(earlier);
    onChange(toParam(last));
  };
  const only = units.length === 1 && units[0]?.whole !== null && units[0]?.whole === units[0]?.step;
  const further = furtherOf(shown);
  return (
    <div data-testid="plan-editor" className={classes.editor}>
      {only && units[0] ? (
        <Select
          size="xs"
          label="Device that computes"
          data={workers}
          value={shown.devices.find((share) => amount(share, 'layers') > 0)?.device ?? null}
          onChange={(device) => device && units[0] && put(alone(shown, units[0], device))}
          allowDeselect={false}
          data-testid="plan-device"
          maw={260}
        />
      ) : (
        <>
          {units
            .filter(({ name }) => isDivided(name))
            .map((unit) => (
              <div key={unit.name}>
                <Text size="xs" c="dimmed" mb={6}>
                  {unit.whole === null ? '' : `${unit.whole} `}
                  {TITLES[unit.name]}
                  {unit.step > 1 && `, in steps of ${unit.step}`}
                </Text>
                <DivisionBar plan={shown} unit={unit} colorOf={colorOf} onChange={put} />
              </div>
            ))}
          <MoveForm plan={shown} units={units.filter(({ name }) => isDivided(name))} onChange={put} />
        </>
      )}
      <ShareTable
        plan={shown}
        units={only ? [] : units}
        colorOf={colorOf}
        before={own?.devices}
        after={waiting ? undefined : report?.devices}
        onChange={put}
      />
      {further.length > 0 && (
        <Text size="xs" c="dimmed" data-testid="plan-further">
          Also in this plan: {further.join('; ')}.
        </Text>
      )}
      {refusal && !waiting ? (
        <Text size="sm" c="red" role="alert" tabIndex={-1} data-testid="plan-refused">
          {refusal}
        </Text>
      ) : (
        <Effect before={own} after={report} waiting={waiting} />
      )}
      <Group gap="xs">
        <Button
          variant="default"
          size="xs"
          leftSection={<IconArrowBackUp size={14} />}
          disabled={edits.length < 2}
          onClick={undo}
          data-testid="plan-undo"
        >
          Undo
        </Button>
        <Button
          variant="default"
          size="xs"
          leftSection={<IconDownload size={14} />}
          component="a"
          href={`data:application/json,${encodeURIComponent(`${JSON.stringify(toParam(shown), null, 2)}\n`)}`}
          download="plan.json"
          data-testid="plan-save"
        >
          Save as a file
        </Button>
        <OpenPlan onOpen={(plan) => put(completed(plan, workers))} />
        <LeaveButton onLeave={leave} />
      </Group>
    </div>
  );
}

function LeaveButton({ onLeave }: { onLeave: () => void }) {
  return (
    <Button variant="subtle" size="xs" onClick={onLeave} data-testid="plan-own" ml="auto">
      Let the strategy plan
    </Button>
  );
}
