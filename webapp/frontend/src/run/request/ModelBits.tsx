import { SegmentedControl, Tooltip } from '@mantine/core';
import type { Draft } from './draft';
import { WeightBits } from './WeightBits';

type InBits = Pick<Draft, 'weight_bits' | 'activation_bits'>;

interface Props extends InBits {
  onBits: (bits: Partial<InBits>) => void;
}

const ACTIVATIONS = [
  { value: 'float', label: 'Float activations' },
  { value: '8', label: '8-bit activations' },
];

/** Chooses the bits of the model's matrices, and with 8 of them those of what products take in. */
export function ModelBits({ weight_bits, activation_bits, onBits }: Props) {
  return (
    <>
      <WeightBits bits={weight_bits} onBits={(bits) => onBits({ weight_bits: bits, activation_bits: 0 })} />
      {(weight_bits === 8 || activation_bits === 8) && (
        <Tooltip
          multiline
          w={300}
          label="In 8 bits, products are of whole numbers, as on microcontrollers. Methods that multiply none say so under Strategy; the report says how far the answer moved."
        >
          <SegmentedControl
            value={activation_bits === 8 ? '8' : 'float'}
            onChange={(value) => onBits({ activation_bits: value === '8' ? 8 : 0 })}
            data={ACTIVATIONS}
            data-testid="activation-bits"
          />
        </Tooltip>
      )}
    </>
  );
}
