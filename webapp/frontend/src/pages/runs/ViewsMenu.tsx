import { ActionIcon, Button, Menu, TextInput } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { IconBookmark, IconX } from '@tabler/icons-react';
import { useState } from 'react';
import { completed, type View, withView } from '@/run/table/views';

interface Props {
  now: Omit<View, 'name'>;
  onOpen: (view: View) => void;
}

/** Saved views of this browser: opens one, keeps the present one under a name, deletes one. */
export function ViewsMenu({ now, onOpen }: Props) {
  const [views, setViews] = useLocalStorage<View[]>({ key: 'edgeloom-run-views', defaultValue: [] });
  const [name, setName] = useState('');
  const save = () => {
    if (!name.trim()) return;
    setViews(withView(views, { ...now, name: name.trim() }));
    setName('');
  };
  const remove = (view: View, item: HTMLElement) => {
    neighbourOf(item)?.focus(); // before the item with the focus is gone
    setViews(views.filter((one) => one !== view));
  };
  return (
    <Menu
      position="bottom-end"
      width={260}
      closeOnItemClick={false}
      withInitialFocusPlaceholder={views.length > 0}
    >
      <Menu.Target>
        <Button variant="default" leftSection={<IconBookmark size={16} />} data-testid="views">
          Views
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {views.map((view) => (
          <Menu.Item
            key={view.name}
            onClick={() => onOpen(completed(view))}
            onKeyDown={(event) => {
              if (event.key === 'Delete') remove(view, event.currentTarget);
            }}
            aria-keyshortcuts="Delete"
            data-testid={`view-${view.name}`}
            rightSection={
              <ActionIcon
                component="span"
                size="xs"
                variant="subtle"
                color="gray"
                title={`Delete the view ${view.name} (Del)`}
                onClick={(event) => {
                  event.stopPropagation();
                  const item = event.currentTarget.closest<HTMLElement>('[role="menuitem"]');
                  if (item) remove(view, item);
                }}
              >
                <IconX size={13} />
              </ActionIcon>
            }
          >
            {view.name}
          </Menu.Item>
        ))}
        <div style={{ padding: 8 }}>
          <TextInput
            size="xs"
            placeholder="Keep this view as …, then Enter"
            aria-label="Name of the view"
            value={name}
            data-autofocus={views.length === 0 || undefined}
            onChange={(event) => setName(event.currentTarget.value)}
            onKeyDown={(event) => {
              event.stopPropagation();
              if (event.key === 'Enter') save();
            }}
            data-testid="view-name"
          />
        </div>
      </Menu.Dropdown>
    </Menu>
  );
}

/** What has the focus once an item of the menu is gone: the next view, else the one before, else the field. */
function neighbourOf(item: HTMLElement): HTMLElement | null {
  const others = [item.nextElementSibling, item.previousElementSibling];
  const view = others.find((other) => other?.matches('[role="menuitem"]'));
  return view instanceof HTMLElement ? view : (item.parentElement?.querySelector('input') ?? null);
}
