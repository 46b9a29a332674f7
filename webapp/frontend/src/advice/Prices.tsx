import { Group, NumberInput, Select, Text } from '@mantine/core';
import { useState } from 'react';

export type PriceOf = Record<string, number>;

/** Prices of boards in US dollars, in place of their own: one is chosen and gets its price; none takes it back. */
export function Prices(props: {
  boards: readonly { name: string; title?: string; price_usd?: number | null }[];
  prices: PriceOf;
  onChange: (prices: PriceOf) => void;
}) {
  const { boards, prices, onChange } = props;
  const [chosen, setChosen] = useState<string | null>(null);
  const titles = Object.fromEntries(boards.map(({ name, title }) => [name, title || name]));
  const published = boards.find(({ name }) => name === chosen)?.price_usd ?? null;
  const given = boards.filter(({ name }) => prices[name] !== undefined);
  return (
    <>
      <Group gap="xs" mt={4} align="flex-end" wrap="nowrap">
        <Select
          size="xs"
          label="Another price of"
          searchable
          clearable
          value={chosen !== null && titles[chosen] ? chosen : null}
          data={Object.entries(titles).map(([value, label]) => ({ value, label }))}
          onChange={setChosen}
          data-testid="price-board"
        />
        <NumberInput
          size="xs"
          aria-label="Price"
          min={0}
          prefix="$"
          placeholder={chosen === null ? '' : published === null ? 'none published' : `$${published}`}
          disabled={chosen === null}
          value={chosen === null ? '' : (prices[chosen] ?? '')}
          onChange={(value) => chosen !== null && onChange(withPrice(prices, chosen, value))}
          data-testid="price-amount"
        />
      </Group>
      {given.length > 0 && (
        <Text size="xs" c="dimmed" data-testid="prices">
          {given.map(({ name }) => `${titles[name]}: $${prices[name]}`).join(', ')}
        </Text>
      )}
    </>
  );
}

/** `prices` with that of one board; what is no number takes it away. */
export function withPrice(prices: PriceOf, name: string, value: number | string): PriceOf {
  const { [name]: _, ...others } = prices;
  return typeof value === 'number' ? { ...others, [name]: value } : others;
}

/** The prices of these boards alone: those of presets are none of a cluster's devices. */
export const pricesOf = (prices: PriceOf, boards: readonly { name: string }[]): PriceOf =>
  Object.fromEntries(
    boards.flatMap(({ name }) => (prices[name] === undefined ? [] : [[name, prices[name]] as const])),
  );
