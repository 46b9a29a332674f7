/** The server's own types, generated from its OpenAPI document by `manage.py write_api_types`. */
import type { components } from '../generated/schema';

export type Schemas = components['schemas'];
