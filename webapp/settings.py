"""Settings. Every value that differs between machines is an environment variable, read here and nowhere else.

Variable           default                          what for
LOOM_STATE_DIR     .loom in the checkout, else ~/.local/state/edgeloom
                                                    secret key, SQLite file, models of this machine's people
DATABASE_URL       SQLite in the state directory    postgres://user:password@host/name for several machines
LOOM_MODEL_STORE   model-store in the state dir.   where added models are kept: a directory, or a URL (s3://…)
LOOM_MODEL_BYTES   20000000000                      the largest model that may be uploaded
LOOM_MODELS_BYTES  200000000000                     all added models together
REDIS_URL          redis://127.0.0.1:6391/0         the private Redis that ./loom starts
SECRET_KEY         generated once, kept in a file
ALLOWED_HOSTS      loopback names only              comma-separated; HTTP and WebSocket both check it
CSRF_TRUSTED_ORIGINS  none                          https://… origins, behind a proxy
LOOM_WRITES_PER_MINUTE  600                         requests of one person that change something; 0: any
LOOM_FILES_PER_MINUTE   60                          exports of one person, each made when asked for; 0: any
LOOM_RUNS_WAITING  200                              queued runs of one person who is no administrator
LOOM_MACHINE_HOURS 24                               emulations of one person who is no administrator in a day;
                                                    0: any
LOOM_STORED_GB     20                               recorded events of one person who is no administrator
LOOM_KEEP_RUNS_DAYS  0                              runs that ended so long ago are deleted; 0: none
LOOM_KEEP_EVENTS_DAYS  0                            events of such runs, whose reports stay; 0: none
LOOM_KEEP_MODELS_DAYS  0                            added models that no run has used for so long; 0: none
LOOM_SHARED        off                              every operator may change what others made
LOOM_METRICS_TOKEN none                             lets other machines read /metrics, as a Bearer token
LOOM_LOG_FORMAT    line                             json: one JSON object a line, with the run's id
LOOM_METHODS       none                             installed methods that are used, by name, comma-separated
LOOM_METRICS       none                             installed figures of reports that are used, likewise
LOOM_DATA          none                             installed packs of data that are used, likewise
LOOM_OIDC_ISSUER   none                             https://… of an OpenID provider with which people log in,
                                                    with LOOM_OIDC_CLIENT and LOOM_OIDC_SECRET
LOOM_OIDC_NAME     single sign-on                   what its button says
LOOM_OIDC_ROLE     viewer                           the role of who comes for the first time; or operator
LOOM_HTTPS         off                              cookies over HTTPS only, trust X-Forwarded-Proto
DEBUG              off
"""

from __future__ import annotations

import os
import secrets
from datetime import timedelta
from pathlib import Path

import environ

from engine.domain.state_directory import state_directory
from engine.plugins.installed import VARIABLES
from webapp.base import private
from webapp.base.front_end import FRONTEND_DIST

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
STATE_DIR = state_directory()
MODELS_DIR = STATE_DIR / "models"
MODEL_STORE = env.str("LOOM_MODEL_STORE", default=str(STATE_DIR / "model-store"))
MODEL_CACHE = STATE_DIR / "model-cache"
MODEL_BYTES = env.int("LOOM_MODEL_BYTES", default=20_000_000_000)
MODELS_BYTES = env.int("LOOM_MODELS_BYTES", default=200_000_000_000)
MACHINES_DIR = STATE_DIR / "machines"
CALIBRATION_FILE = (
    Path(env.str("XDG_CACHE_HOME", default="") or Path.home() / ".cache") / "edgeloom" / "calibration.json"
)
"""The file in which `./loom calibrate` keeps the times of this machine."""


# Read by `engine/plugins/installed.py`: on a server nothing that is installed is used unless it is named.
for name in VARIABLES:
    os.environ.setdefault(name, "")

private.close(STATE_DIR)


def stored_secret(path: Path) -> str:
    """The secret in `path`, made on first use. `link` lets only one of two starting processes win."""
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(50))
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            pass  # another process made it first: theirs counts
        finally:
            draft.unlink()
    return path.read_text()


SECRET_KEY = env.str("SECRET_KEY", default="") or stored_secret(STATE_DIR / "secret_key")
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "axes",
    "channels",
    "ninja",
    "webapp.accounts",
    "webapp.clusters",
    "webapp.jobs",
    "webapp.runs",
    "webapp.experiments",
    "webapp.openapi",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "webapp.http.headers.browser_policy",
    "webapp.http.nul.no_nul",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "webapp.http.compression.CompressedAnswers",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "axes.middleware.AxesMiddleware",
]
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]

ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# Wrong log-ins, through the API or the administration: per person and address, five, then a minute's wait.
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=1)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False
AXES_LOCKOUT_CALLABLE = "webapp.accounts.access.locked_out"

# Log-in with an OpenID provider: off unless one is named. Nobody signs up or resets a password with allauth.
OIDC_ISSUER = env.str("LOOM_OIDC_ISSUER", default="")
OIDC_NAME = env.str("LOOM_OIDC_NAME", default="single sign-on")
OIDC_ROLE = env.str("LOOM_OIDC_ROLE", default="viewer")
OIDC_APP = {
    "provider_id": "lab",
    "name": OIDC_NAME,
    "client_id": env.str("LOOM_OIDC_CLIENT", default=""),
    "secret": env.str("LOOM_OIDC_SECRET", default=""),
    "settings": {"server_url": OIDC_ISSUER},
}
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {"APPS": [OIDC_APP] if OIDC_ISSUER else [], "OAUTH_PKCE_ENABLED": True}
}
SOCIALACCOUNT_ADAPTER = "webapp.accounts.openid.Adapter"
SOCIALACCOUNT_ONLY = SOCIALACCOUNT_LOGIN_ON_GET = True
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_UNIQUE_EMAIL = False
ACCOUNT_SIGNUP_FIELDS = ["username*"]
LOGIN_REDIRECT_URL = "/"
# Budgets of one person, so that nobody takes the service from others.
WRITES_PER_MINUTE = env.int("LOOM_WRITES_PER_MINUTE", default=600)
FILES_PER_MINUTE = env.int("LOOM_FILES_PER_MINUTE", default=60)
MAX_RUNS_WAITING = env.int("LOOM_RUNS_WAITING", default=200)
MACHINE_HOURS = env.float("LOOM_MACHINE_HOURS", default=24.0)
MAX_STORED_BYTES = env.float("LOOM_STORED_GB", default=20.0) * 1e9
# What `./loom tidy` deletes, after so many days.
KEEP_RUNS_DAYS = env.float("LOOM_KEEP_RUNS_DAYS", default=0.0)
KEEP_EVENTS_DAYS = env.float("LOOM_KEEP_EVENTS_DAYS", default=0.0)
KEEP_MODELS_DAYS = env.float("LOOM_KEEP_MODELS_DAYS", default=0.0)
# A small lab may want every operator to stop, change and delete everybody's runs and clusters.
SHARED = env.bool("LOOM_SHARED", default=False)

# Database -----------------------------------------------------------------------------------------
DATABASES = {"default": env.db_url("DATABASE_URL", default=f"sqlite:///{STATE_DIR / 'edgeloom.sqlite3'}")}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # The web server and the workers write at the same time. With WAL readers never wait; IMMEDIATE
    # makes a writer queue at its start, where a deferred one fails half-way with "database is locked".
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

METRICS_TOKEN = env.str("LOOM_METRICS_TOKEN", default="")

# Redis and Celery ---------------------------------------------------------------------------------
REDIS_URL = env.str("REDIS_URL", default="redis://127.0.0.1:6391/0")

# Browser ------------------------------------------------------------------------------------------
HTTPS = env.bool("LOOM_HTTPS", default=False)
SESSION_ENGINE = "webapp.accounts.sessions"
SESSION_COOKIE_NAME = "edgeloom_session"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
LOGIN_URL = "/login"
DATA_UPLOAD_MAX_MEMORY_SIZE = 5_000_000

STATIC_URL = "/static/"
STATIC_ROOT = STATE_DIR / "static"
STATIC_ROOT.mkdir(parents=True, exist_ok=True)
# The built front end is served below /static/app/: the `base` of its Vite configuration.
STATICFILES_DIRS = [("app", FRONTEND_DIST)] if FRONTEND_DIST.is_dir() else []
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    # Not the manifest storage: Vite hashes names already, and hashing twice loads modules twice.
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True  # works from the source tree, collected or not
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/static/app/assets/.+-[\w-]{8}\.\w+$"
WHITENOISE_ALLOW_ALL_ORIGINS = False

# People and text ----------------------------------------------------------------------------------
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LANGUAGE_CODE = "en-gb"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
        "json": {"()": "webapp.base.logs.JsonLines"},
    },
    "filters": {"own_traces": {"()": "webapp.base.logs.OwnTraces"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": env.str("LOOM_LOG_FORMAT", default="line"),
            "filters": ["own_traces"],
        }
    },
    "root": {"handlers": ["console"], "level": "INFO"},
}
