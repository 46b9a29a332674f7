import {
  Button,
  Group,
  Modal,
  NumberInput,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Text,
} from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, sentence } from '@/api/client';
import { useCatalogue } from '@/api/queries';
import type { Shape } from '@/api/types';
import { ErrorPanel } from '@/components/ErrorPanel';
import { QuantityInput } from '@/components/QuantityInput';
import { BIT_RATE, TIME } from '@/format/quantities';
import { ClusterPicture } from '@/cluster/ClusterPicture';
import type { Drawing } from '@/cluster/drawing';
import { capital } from '@/format/words';

interface Props {
  opened: boolean;
  onClose: () => void;
  /** Whether the shape replaces something drawn. */
  replaces: boolean;
  onTake: (drawing: Drawing) => void;
}

/** Creates equal devices in a star, ring, mesh or tree, after a preview. */
export function ShapeDialog({ opened, onClose, replaces, onTake }: Props) {
  const { data: catalogue } = useCatalogue();
  const [shape, setShape] = useState<Shape>('star');
  const [devices, setDevices] = useState(4);
  const [chosen, setPreset] = useState<string | null>(null);
  const [bitPerS, setBitPerS] = useState(100e6);
  const [delayS, setDelayS] = useState(0.2e-3);
  const preset = chosen ?? catalogue?.presets[0]?.name ?? null;
  const request = { shape, devices, preset, bit_per_s: bitPerS, delay_s: delayS };
  const answer = useQuery({
    queryKey: ['shape', request],
    queryFn: ({ signal }) => api.post<Drawing>('/clusters/shape', request, signal),
    enabled: opened && preset !== null,
    placeholderData: keepPreviousData,
  });
  return (
    <Modal opened={opened} onClose={onClose} title="Start from a shape" size="lg" centered>
      <Stack>
        <SegmentedControl
          value={shape}
          onChange={(value) => setShape(value as Shape)}
          fullWidth
          data-testid="shape"
          data={(catalogue?.shapes ?? []).map((name) => ({
            value: name,
            label: capital(name),
          }))}
        />
        <SimpleGrid cols={4} spacing="sm">
          <NumberInput
            label="Devices"
            size="xs"
            min={1}
            max={64}
            value={devices}
            data-testid="shape-devices"
            allowDecimal={false}
            onChange={(value) => typeof value === 'number' && value >= 1 && setDevices(Math.min(64, value))}
          />
          <Select
            label="Each device"
            size="xs"
            value={preset}
            onChange={setPreset}
            allowDeselect={false}
            data-testid="shape-preset"
            data={catalogue?.presets.map(({ name, title }) => ({ value: name, label: title || name })) ?? []}
          />
          <QuantityInput
            label="Rate of the links"
            quantity={BIT_RATE}
            value={bitPerS}
            onChange={(value) => value && setBitPerS(value)}
            testId="shape-bit_per_s"
          />
          <QuantityInput
            label="Delay"
            quantity={TIME}
            value={delayS}
            onChange={(value) => value !== null && setDelayS(value)}
            testId="shape-delay_s"
          />
        </SimpleGrid>
        {answer.isError && <ErrorPanel message={sentence(answer.error)} />}
        {answer.data && (
          <ClusterPicture spec={answer.data.spec} layout={answer.data.layout} width={600} height={260} />
        )}
        <Group justify="space-between">
          <Text size="xs" c="dimmed">
            {replaces ? 'This replaces the drawing; undo restores it.' : ''}
          </Text>
          <Button
            disabled={!answer.data}
            data-testid="shape-take"
            onClick={() => answer.data && onTake(answer.data)}
          >
            Draw this {shape}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
