import { ActionIcon, Button, Checkbox, Group, Menu, Select, TextInput, Tooltip } from '@mantine/core';
import { IconColumns3, IconSearch } from '@tabler/icons-react';
import type { RunRow } from '@/api/types';
import { COLUMNS } from '@/run/table/columns';
import { choices, type Filter, NO_FILTER, statusGroup } from '@/run/table/table';

interface Props {
  runs: readonly RunRow[];
  filter: Filter;
  onFilter: (filter: Filter) => void;
  columns: readonly string[];
  onColumns: (keys: string[]) => void;
}

const CHOICES: readonly {
  key: Exclude<keyof Filter, 'text'>;
  label: string;
  of: (run: RunRow) => string | string[];
}[] = [
  { key: 'status', label: 'Any state', of: statusGroup },
  { key: 'cluster', label: 'Any cluster', of: (run) => run.cluster_name },
  { key: 'model', label: 'Any model', of: (run) => run.model },
  { key: 'strategy', label: 'Any strategy', of: (run) => run.strategy },
  { key: 'tag', label: 'Any tag', of: (run) => run.tags },
];

/** Search and filters of the list of runs, and the choice of its columns. */
export function FilterBar({ runs, filter, onFilter, columns, onColumns }: Props) {
  const filtered = Object.values(filter).some(Boolean);
  return (
    <Group gap="xs">
      <TextInput
        flex={1}
        maw={280}
        placeholder="Search"
        aria-label="Search runs"
        leftSection={<IconSearch size={15} />}
        value={filter.text}
        onChange={(event) => onFilter({ ...filter, text: event.currentTarget.value })}
        data-testid="runs-search"
      />
      {CHOICES.map(({ key, label, of }) => (
        <Select
          key={key}
          w={146}
          clearable
          placeholder={label}
          aria-label={label}
          data={choices(runs, of)}
          value={filter[key]}
          onChange={(value) => onFilter({ ...filter, [key]: value })}
          data-testid={`filter-${key}`}
        />
      ))}
      {filtered && (
        <Button variant="subtle" size="sm" onClick={() => onFilter(NO_FILTER)} data-testid="filter-clear">
          Clear
        </Button>
      )}
      <Menu position="bottom-end" closeOnItemClick={false}>
        <Tooltip label="Columns">
          <Menu.Target>
            <ActionIcon variant="default" size={36} ml="auto" aria-label="Columns" data-testid="columns">
              <IconColumns3 size={17} />
            </ActionIcon>
          </Menu.Target>
        </Tooltip>
        <Menu.Dropdown>
          {COLUMNS.map(({ key, title }) => (
            <Menu.Item
              key={key}
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
    </Group>
  );
}
