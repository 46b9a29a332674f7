import { Menu, Text } from '@mantine/core';
import { IconLogout } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { Link } from '@/components/navigation';
import { api } from '@/api/client';
import type { Session } from '@/api/queries';
import { useTour } from '@/tour/tour';
import { UserButton } from './UserButton';

/** Role, account, tour, API documentation, administration, log out: open at first. */
export function UserMenuItems({ session }: { session: Session }) {
  const target = useRef<HTMLButtonElement>(null);
  const client = useQueryClient();
  const goTour = useTour((state) => state.go);
  const logOut = async () => {
    await api.post('/logout');
    client.clear();
    client.setQueryData(['session'], null);
  };
  return (
    <Menu position="bottom-end" width={220} defaultOpened onClose={() => target.current?.focus()}>
      <Menu.Target>
        <UserButton ref={target} user={session.user} />
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          Role{' '}
          <Text span inherit fw={600}>
            {session.role}
          </Text>
        </Menu.Label>
        <Menu.Item component={Link} to="/account" data-testid="account">
          Password and API tokens
        </Menu.Item>
        <Menu.Item onClick={() => goTour(0)} data-testid="tour-again">
          Tour of the pages
        </Menu.Item>
        <Menu.Item component="a" href="/api/docs">
          API documentation
        </Menu.Item>
        {session.role === 'admin' && (
          <Menu.Item component="a" href="/admin/">
            People and rights
          </Menu.Item>
        )}
        <Menu.Divider />
        <Menu.Item leftSection={<IconLogout size={15} />} onClick={logOut} data-testid="logout">
          Log out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
