import { Center, Group, SegmentedControl, Switch, Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Panel } from '@/components/Panel';
import { Figure } from './Figure';
import { FigureTable } from './FigureTable';
import type { FigureData } from './model';

interface Props {
  title: string;
  about?: string;
  /** undefined: nothing is known yet. */
  data: FigureData | undefined;
  /** Whether the values belong to an earlier design. */
  stale?: boolean;
  selected: ReadonlySet<string>;
  onSelect: (digests: readonly string[], how: 'toggle' | 'add') => void;
  /** The points of the mark below the pointer. */
  onHover?: (digests: readonly string[]) => void;
  /** Whether the single repeats are drawn at first. */
  repeatsShown?: boolean;
  height?: number;
  /** Above the figure: which axes. */
  controls?: ReactNode;
  /** At the right of the title. */
  extra?: ReactNode;
  /** What is said while there is no data. */
  nothing?: string;
  /** Below the figure: what is to be known of it. */
  children?: ReactNode;
}

const EMPTY_HEIGHT = 34;

/** A figure with its controls, as a picture or as a table. */
export function FigurePanel({
  title,
  about,
  data,
  stale = false,
  selected,
  onSelect,
  onHover,
  repeatsShown = false,
  height = 390,
  controls,
  extra,
  nothing,
  children,
}: Props) {
  const [shown, setShown] = useState<'figure' | 'table'>('figure');
  const [showsRepeats, setShowsRepeats] = useState(repeatsShown);
  const repeated = data?.panels.some((panel) =>
    panel.lines.some((line) => line.spots.some((spot) => spot.repeats.length > 1)),
  );
  return (
    <Panel
      title={title}
      about={about}
      testId="figure-panel"
      extra={
        <Group gap="sm">
          {repeated && shown === 'figure' && (
            <Switch
              size="xs"
              label="single repeats"
              checked={showsRepeats}
              onChange={(event) => setShowsRepeats(event.currentTarget.checked)}
              data-testid="show-repeats"
            />
          )}
          <SegmentedControl
            size="xs"
            value={shown}
            onChange={(next) => setShown(next as 'figure' | 'table')}
            data={[
              { value: 'figure', label: 'Figure' },
              { value: 'table', label: 'Table' },
            ]}
            data-testid="figure-or-table"
          />
          {extra}
        </Group>
      }
    >
      {controls}
      <div
        style={{
          minHeight: height + EMPTY_HEIGHT,
          opacity: stale ? 0.5 : 1,
          transition: 'opacity 150ms 150ms',
        }}
      >
        {!data && nothing && (
          <Center h={height}>
            <Text size="sm" c="dimmed">
              {nothing}
            </Text>
          </Center>
        )}
        {data && shown === 'figure' && (
          <Figure
            data={data}
            selected={selected}
            onSelect={onSelect}
            onHover={onHover}
            showsRepeats={showsRepeats}
            height={height}
            testId="figure"
          />
        )}
        {data && shown === 'table' && <FigureTable data={data} />}
      </div>
      {children}
    </Panel>
  );
}
