import { useQuery } from '@tanstack/react-query';
import { api } from '@/api/client';
import type { Schemas } from '@/api/types/schemas';

export type Account = Schemas['Account'];
export type Token = Schemas['TokenOut'];
export type NewToken = Schemas['NewToken'];
export type Role = Account['role'];

export const ROLES: readonly Role[] = ['viewer', 'operator', 'admin'];

export function useAccount() {
  return useQuery({
    queryKey: ['account'],
    queryFn: ({ signal }) => api.get<Account>('/account', signal),
  });
}

/** The roles that a token of somebody with this role may have. */
export function rolesUpTo(role: Role): Role[] {
  return ROLES.slice(0, ROLES.indexOf(role) + 1);
}
