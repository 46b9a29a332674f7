import {
  ActionIcon,
  Button,
  Checkbox,
  Group,
  Menu,
  MultiSelect,
  Select,
  TextInput,
  Tooltip,
} from '@mantine/core';
import { IconColumns3, IconSearch } from '@tabler/icons-react';
import type { RunRow } from '@/api/types';
import type { ColumnSpec } from '@/run/table/columns';
import { choices, type Filter, NO_FILTER, statusGroup, verdictsOf } from '@/run/table/table';
import type { View } from '@/run/table/views';
import { RangesMenu } from './RangesMenu';
import { ViewsMenu } from './ViewsMenu';

type Shown = Omit<View, 'name'>;

interface Props {
  runs: readonly RunRow[];
  /** All columns that these runs may have. */
  all: readonly ColumnSpec[];
  view: Shown;
  onView: (patch: Partial<Shown>) => void;
}

const CHOICES: readonly {
  key: Exclude<keyof Filter, 'text' | 'ranges'>;
  label: string;
  of: (run: RunRow) => string | string[];
}[] = [
  { key: 'status', label: 'Any state', of: statusGroup },
  { key: 'cluster', label: 'Any cluster', of: (run) => run.cluster_name },
  { key: 'model', label: 'Any model', of: (run) => run.model },
  { key: 'strategy', label: 'Any strategy', of: (run) => run.strategy },
  { key: 'tag', label: 'Any tag', of: (run) => run.tags },
  { key: 'verdict', label: 'Any verdict', of: verdictsOf },
];

/** Search, filters and ranges of the list of runs; groups, columns and saved views. */
export function FilterBar({ runs, all, view, onView }: Props) {
  const { filter } = view;
  const onFilter = (patch: Partial<Filter>) => onView({ filter: { ...filter, ...patch } });
  const filtered = JSON.stringify(filter) !== JSON.stringify(NO_FILTER);
  return (
    <Group gap="xs">
      <TextInput
        flex={1}
        miw={130}
        maw={260}
        placeholder="Search"
        aria-label="Search runs"
        leftSection={<IconSearch size={15} />}
        value={filter.text}
        onChange={(event) => onFilter({ text: event.currentTarget.value })}
        data-testid="runs-search"
      />
      {CHOICES.map(({ key, label, of }) => (
        <Select
          key={key}
          w={126}
          clearable
          placeholder={label}
          aria-label={label}
          data={choices(runs, of)}
          value={filter[key]}
          onChange={(value) => onFilter({ [key]: value })}
          data-testid={`filter-${key}`}
        />
      ))}
      <RangesMenu
        ranges={filter.ranges}
        onChange={(ranges) => onFilter({ ranges })}
        columns={all.filter(({ numeric }) => numeric)}
      />
      {filtered && (
        <Button
          variant="subtle"
          size="sm"
          onClick={() => onView({ filter: NO_FILTER })}
          data-testid="filter-clear"
        >
          Clear
        </Button>
      )}
      <Group gap="xs" ml="auto">
        <MultiSelect
          w={view.groupBy.length > 0 ? 260 : 130}
          placeholder={view.groupBy.length > 0 ? '' : 'Group by'}
          aria-label="Group by"
          value={[...view.groupBy]}
          data={groupKeys(all)}
          onChange={(groupBy) => onView({ groupBy })}
          data-testid="group-by"
        />
        <ViewsMenu
          now={view}
          onOpen={({ filter, sort, columns, groupBy }) => onView({ filter, sort, columns, groupBy })}
        />
        <ColumnsMenu all={all} columns={view.columns} onColumns={(columns) => onView({ columns })} />
      </Group>
    </Group>
  );
}

/** What runs are grouped by: names, tags and parameters, not measured figures. */
function groupKeys(all: readonly ColumnSpec[]): { value: string; label: string }[] {
  const named = ['cluster_name', 'model', 'strategy', 'tags', 'owner', 'status'];
  return all
    .filter(({ key }) => named.includes(key) || key.startsWith('params.'))
    .map(({ key, title }) => ({ value: key, label: title }));
}

interface ColumnsProps {
  all: readonly ColumnSpec[];
  columns: readonly string[];
  onColumns: (keys: string[]) => void;
}

function ColumnsMenu({ all, columns, onColumns }: ColumnsProps) {
  return (
    <Menu position="bottom-end" closeOnItemClick={false}>
      <Tooltip label="Columns">
        <Menu.Target>
          <ActionIcon variant="default" size={36} aria-label="Columns" data-testid="columns">
            <IconColumns3 size={17} />
          </ActionIcon>
        </Menu.Target>
      </Tooltip>
      <Menu.Dropdown mah={480} style={{ overflowY: 'auto' }}>
        {all.map(({ key, title, about }) => (
          <Menu.Item
            key={key}
            title={about}
            onClick={() =>
              onColumns(columns.includes(key) ? columns.filter((one) => one !== key) : [...columns, key])
            }
          >
            <Checkbox
              size="xs"
              label={title}
              checked={columns.includes(key)}
              readOnly
              style={{ pointerEvents: 'none' }}
              tabIndex={-1}
            />
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
