import { Checkbox, SegmentedControl, Select, Text, TextInput } from '@mantine/core';
import { Fragment, type ReactNode } from 'react';
import type { DeviceSpec } from '@/api/types';
import { QuantityInput } from '@/components/QuantityInput';
import { DEVICE_FIELDS, type DeviceField, MEASURED_SCALE } from './deviceFields';
import { flopRate } from '@/format/units';
import { updateDevices, whyNotRename, withSpec } from '@/cluster/drawing';
import classes from './editor.module.css';
import { editor, useDrawing } from './editorStore';
import { NameInput } from './NameInput';
import { OnOff } from './OnOff';
import { DiskKind } from './PartPreset';

interface Props {
  /** Properties of one device, or of several that get the same values. */
  devices: DeviceSpec[];
  readOnly: boolean;
  /** Problems by field of the first device. */
  errors: Record<string, string>;
}

export function DevicePanel({ devices, readOnly, errors }: Props) {
  const { spec } = useDrawing();
  const { edit, renameNode } = editor();
  const [first] = devices;
  if (!first) return null;
  const names = devices.map((device) => device.name);
  const many = devices.length > 1;
  const set = (patch: Partial<DeviceSpec>, key: string) =>
    edit((old) => updateDevices(old, names, patch), `${names.join()}.${key}`);
  const numeric = (field: DeviceField) => {
    const valueOf = ({ [field.key]: value = 0 }: DeviceSpec) => value; // what the server leaves out is 0
    const same = devices.every((device) => valueOf(device) === valueOf(first));
    return (
      <QuantityInput
        key={`${names.join()}.${field.key}`}
        label={field.label}
        description={field.help}
        quantity={field.quantity}
        value={same ? valueOf(first) : null}
        optional={Boolean(field.optional) || !same}
        placeholder={same ? field.optional : 'different'}
        disabled={readOnly}
        error={errors[field.key]}
        onChange={(value) => (value !== null || field.optional) && set({ [field.key]: value }, field.key)}
        testId={`device-${field.key}`}
      />
    );
  };
  return (
    <>
      <div className={classes.section}>
        <span className="overline">{many ? `${devices.length} devices` : 'Device'}</span>
        {!many && (
          <>
            <NameInput
              label="Name"
              value={first.name}
              refuse={(name) => whyNotRename(spec, first.name, name)}
              disabled={readOnly}
              onRename={(name) => renameNode(first.name, name)}
              testId="device-name"
            />
            <TextInput
              label="What it is"
              size="xs"
              value={first.title}
              disabled={readOnly}
              data-testid="device-title"
              onChange={(event) => set({ title: event.currentTarget.value }, 'title')}
            />
          </>
        )}
        {!many && (
          <TextInput
            label="Board"
            description="Its name on the page Machines; empty: a drawn device"
            size="xs"
            value={first.node ?? ''}
            disabled={readOnly}
            error={errors.node}
            data-testid="device-node"
            onChange={(event) => set({ node: event.currentTarget.value }, 'node')}
          />
        )}
        <SegmentedControl
          size="xs"
          value={devices.every((device) => device.role === first.role) ? first.role : ''}
          disabled={readOnly}
          data-testid="device-role"
          fullWidth
          onChange={(role) => set({ role: role as DeviceSpec['role'] }, 'role')}
          data={[
            { value: 'worker', label: 'Computes layers' },
            { value: 'terminal', label: 'Only sends requests' },
          ]}
        />
        {!many && (
          <Checkbox
            size="xs"
            label="Holds the prompt and receives the result"
            checked={spec.source === first.name}
            disabled={readOnly || spec.source === first.name}
            data-testid="device-source"
            onChange={() => edit((old) => withSpec(old, { source: first.name }))}
          />
        )}
        <OnOff names={names} readOnly={readOnly} />
      </div>
      {DEVICE_FIELDS.map((group) => (
        <Section
          key={group.title}
          title={group.title}
          folded={group.folded === true && !group.fields.some(({ key }) => errors[key])}
        >
          {group.fields.map((field) => (
            <Fragment key={field.key}>
              {field.key === 'disk_byte_per_s' && <DiskKind devices={devices} readOnly={readOnly} />}
              {numeric(field)}
            </Fragment>
          ))}
          {group.title === 'Compute' && (
            <>
              <Select
                label="Compute model"
                size="xs"
                value={
                  devices.every((device) => device.compute_model === first.compute_model)
                    ? first.compute_model
                    : null
                }
                placeholder="different"
                disabled={readOnly}
                allowDeselect={false}
                data-testid="device-compute_model"
                onChange={(value) =>
                  value && set({ compute_model: value as DeviceSpec['compute_model'] }, 'compute_model')
                }
                data={[
                  { value: 'roofline', label: 'Roofline: rate, memory, overheads' },
                  {
                    value: 'serial',
                    label: 'Serial: like roofline, but memory access and computation do not overlap',
                  },
                  { value: 'measured', label: 'Measured on this host, scaled' },
                  { value: 'flops', label: 'FLOPs by peak rate alone' },
                ]}
              />
              {first.compute_model === 'measured' && numeric(MEASURED_SCALE)}
            </>
          )}
        </Section>
      ))}
      {!many && (
        <div className={classes.section}>
          <TextInput
            label="Source of these numbers"
            size="xs"
            value={first.source}
            disabled={readOnly}
            data-testid="device-source-text"
            onChange={(event) => set({ source: event.currentTarget.value }, 'source')}
          />
          {first.source && (
            <Text size="xs" c="dimmed">
              {first.source}
            </Text>
          )}
          <FormatRates device={first} />
        </div>
      )}
    </>
  );
}

interface SectionProps {
  title: string;
  /** Whether it is closed until somebody opens it. */
  folded: boolean;
  children: ReactNode;
}

function Section({ title, folded, children }: SectionProps) {
  if (!folded)
    return (
      <div className={classes.section}>
        <span className="overline">{title}</span>
        {children}
      </div>
    );
  return (
    <details className={classes.fold}>
      <summary className="overline">{title}</summary>
      <div className={classes.section}>{children}</div>
    </details>
  );
}

/** What the device reaches with weights of a format, what that is, and whose published rates are behind it. */
function FormatRates({ device }: { device: DeviceSpec }) {
  return device.format_rates.map(({ bits, flop_per_s, memory_frac, basis, source }) => (
    <Text key={bits} size="xs" c="dimmed" data-testid={`device-format-${bits}`}>
      Weights of {bits} bits: {flopRate(flop_per_s)}, {Math.round(100 * memory_frac)} % of the memory
      bandwidth, {basis}
      {source && ` (${source})`}
    </Text>
  ));
}
