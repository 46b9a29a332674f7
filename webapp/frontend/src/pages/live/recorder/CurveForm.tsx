import { Button, Group, NumberInput, Popover, Select, Stack } from '@mantine/core';
import { IconChartLine } from '@tabler/icons-react';
import { useState } from 'react';
import type { ClusterSpec } from '@/api/types';
import type { Curve } from '@/run/scenario/changes';
import { linkChoices } from '@/format/links';

interface Props {
  cluster: ClusterSpec;
  end_s: number;
  onAdd: (curve: Curve) => void;
}

const MAX_STEPS = 200;

/** Adds a rate that rises or falls over a stretch of time, as a series of changes. */
export function CurveForm({ cluster, end_s, onAdd }: Props) {
  const [opened, setOpened] = useState(false);
  const links = linkChoices(cluster.links);
  const [curve, setCurve] = useState<Curve>(() => ({
    link: links[0]?.value ?? '',
    from_s: Number((end_s / 4).toFixed(3)),
    to_s: Number((end_s / 2).toFixed(3)),
    from_bit_per_s: cluster.links[0]?.bit_per_s ?? 1e8,
    to_bit_per_s: (cluster.links[0]?.bit_per_s ?? 1e8) / 10,
    steps: 10,
  }));
  if (links.length === 0) return null;
  const field = (
    label: string,
    key: Exclude<keyof Curve, 'link'>,
    factor: number,
    suffix: string,
    max?: number,
  ) => (
    <NumberInput
      size="xs"
      label={label}
      suffix={suffix}
      value={curve[key] / factor}
      min={key === 'steps' ? 1 : 0}
      max={max}
      hideControls
      onChange={(value) =>
        typeof value === 'number' &&
        (value > 0 || key === 'from_s') &&
        setCurve({ ...curve, [key]: value * factor })
      }
    />
  );
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-end" withArrow shadow="md" width={300}>
      <Popover.Target>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconChartLine size={14} />}
          data-testid="recorder-curve"
          onClick={() => setOpened(!opened)}
        >
          Rate curve
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap={6}>
          <Select
            size="xs"
            label="Link"
            data={links}
            value={curve.link}
            allowDeselect={false}
            onChange={(link) => link && setCurve({ ...curve, link })}
          />
          <Group grow gap="xs">
            {field('From time', 'from_s', 1, ' s')}
            {field('to', 'to_s', 1, ' s')}
          </Group>
          <Group grow gap="xs">
            {field('From rate', 'from_bit_per_s', 1e6, ' Mbit/s')}
            {field('to', 'to_bit_per_s', 1e6, ' Mbit/s')}
          </Group>
          {field('Steps', 'steps', 1, '', MAX_STEPS)}
          <Button
            size="xs"
            data-testid="recorder-curve-add"
            disabled={curve.to_s <= curve.from_s}
            onClick={() => {
              onAdd({ ...curve, steps: Math.min(Math.round(curve.steps), MAX_STEPS) });
              setOpened(false);
            }}
          >
            Add the curve
          </Button>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
